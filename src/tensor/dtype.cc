#include "tensor/dtype.h"

#include <string>

namespace octavo {

namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

// In the order of the enumeration.
constexpr DTypeRow kTable[] = {
    {DType::kF64, "F64", 8},        {DType::kF32, "F32", 4},        {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},      {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E8M0, "F8_E8M0", 1}, {DType::kI64, "I64", 8},        {DType::kI32, "I32", 4},
    {DType::kI16, "I16", 2},        {DType::kI8, "I8", 1},          {DType::kU64, "U64", 8},
    {DType::kU32, "U32", 4},        {DType::kU16, "U16", 2},        {DType::kU8, "U8", 1},
    {DType::kBool, "BOOL", 1},
};

const DTypeRow& Row(DType dtype) {
  return kTable[static_cast<size_t>(dtype)];
}

}  // namespace

std::string_view DTypeName(DType dtype) {
  return Row(dtype).name;
}

Result<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return Unsupported("dtype \"" + std::string(name) +
                     "\" is not one of safetensors' that are read here");
}

int64_t DTypeBytes(DType dtype) {
  return Row(dtype).bytes;
}

}  // namespace octavo
