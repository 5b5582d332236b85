// The header of a safetensors file: parsed and checked in full, and written as the safetensors
// library writes it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace octavo {

// One tensor; its bytes are [begin, end) of the data area.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t begin = 0;
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // sorted by begin
  std::map<std::string, std::string> metadata;
  int64_t data_offset = 0;  // where the data area starts in the file
};

// Checks everything the format demands of `file` (the bytes of a whole file): see
// SafetensorsFile::Open. Messages name `what` (a path) and the tensor.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                 std::string_view what);

// Sorts entries into the order in which the safetensors library stores them (widest dtype first,
// then by name, so that every tensor is aligned) and lays them out without gaps: sets begin and
// end. Returns the bytes of the data area.
int64_t LayOutSafetensors(std::vector<SafetensorsEntry>& entries);

// The length, the JSON in the order of `entries`, and spaces up to a multiple of 8 bytes.
std::string WriteSafetensorsHeader(std::span<const SafetensorsEntry> entries,
                                   const std::map<std::string, std::string>& metadata);

}  // namespace octavo
