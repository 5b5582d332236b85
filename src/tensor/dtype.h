// The element types of tensors, with the names safetensors gives them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace octavo {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
};

// "F32", "BF16", "F8_E4M3" ...: the tag in a safetensors header.
std::string_view DTypeName(DType dtype);

// Inverse of DTypeName; Unsupported names the tag.
Result<DType> ParseDType(std::string_view name);

// Bytes of one element.
int64_t DTypeBytes(DType dtype);

}  // namespace octavo
