#include "io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "base/check.h"
#include "base/json.h"
#include "base/value.h"

namespace octavo {

namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the safetensors library's limit
constexpr int kMaxDepth = 8;                       // the format itself nests three levels

// The library's order of dtypes in a file. It is part of the bytes: wide ones come first, and
// among equals the order is the one of its source.
constexpr std::array kStorageOrder = {
    DType::kU64,    DType::kI64, DType::kF64, DType::kF32,  DType::kU32,    DType::kI32,
    DType::kBF16,   DType::kF16, DType::kU16, DType::kI16,  DType::kF8E8M0, DType::kF8E4M3,
    DType::kF8E5M2, DType::kI8,  DType::kU8,  DType::kBool,
};

size_t StorageRank(DType dtype) {
  const auto* at = std::find(kStorageOrder.begin(), kStorageOrder.end(), dtype);
  OCTAVO_CHECK(at != kStorageOrder.end()) << DTypeName(dtype);
  return static_cast<size_t>(at - kStorageOrder.begin());
}

// An array of `count` (or any number, if negative) non-negative integers.
Result<std::vector<int64_t>> ReadSizes(const Value& entry, std::string_view key, int64_t count) {
  const Value* array = entry.Find(key);
  if (array == nullptr || !array->is_array()) {
    return CorruptFile(fmt::format("{} is {}, expected an array of integers", key,
                                   array == nullptr ? "missing" : array->type_name()));
  }
  std::vector<int64_t> sizes;
  for (const Value& size : array->as_array()) {
    if (!size.is_int() || size.as_int() < 0) {
      return CorruptFile(fmt::format("{} holds {}, expected non-negative integers", key,
                                     WriteJson(size).substr(0, 40)));
    }
    sizes.push_back(size.as_int());
  }
  if (count >= 0 && static_cast<int64_t>(sizes.size()) != count) {
    return CorruptFile(fmt::format("{} has {} elements, expected {}", key, sizes.size(), count));
  }
  return sizes;
}

Result<SafetensorsEntry> ReadEntry(const std::string& name, const Value& value) {
  if (!value.is_object()) {
    return CorruptFile(fmt::format("is {}, expected an object", value.type_name()));
  }
  const Value* tag = value.Find("dtype");
  if (tag == nullptr || !tag->is_string()) {
    return CorruptFile(fmt::format("dtype is {}, expected a string",
                                   tag == nullptr ? "missing" : tag->type_name()));
  }
  SafetensorsEntry entry;
  entry.name = name;
  OCTAVO_ASSIGN_OR_RETURN(entry.dtype, ParseDType(tag->as_string()));
  OCTAVO_ASSIGN_OR_RETURN(entry.shape, ReadSizes(value, "shape", -1));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ReadSizes(value, "data_offsets", 2));
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.begin > entry.end) {
    return CorruptFile(fmt::format("data_offsets [{}, {}] run backwards", entry.begin, entry.end));
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(entry.shape));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, DTypeBytes(entry.dtype), &bytes)) {
    return CorruptFile("shape " + ShapeString(entry.shape) +
                       " has more bytes than an int64 counts");
  }
  if (bytes != entry.end - entry.begin) {
    return CorruptFile(fmt::format("data_offsets [{}, {}] hold {} bytes, expected {} for {} {}",
                                   entry.begin, entry.end, entry.end - entry.begin, bytes,
                                   DTypeName(entry.dtype), ShapeString(entry.shape)));
  }
  return entry;
}

Status ReadMetadata(const Value& value, std::map<std::string, std::string>& metadata) {
  if (!value.is_object()) {
    return CorruptFile(fmt::format("is {}, expected an object of strings", value.type_name()));
  }
  for (const auto& [key, text] : value.as_object()) {
    if (!text.is_string()) {
      return CorruptFile(
          fmt::format("{} is {}, expected a string", JsonString(key), text.type_name()));
    }
    metadata.emplace(key, text.as_string());
  }
  return OkStatus();
}

// Entries sorted by begin must tile [0, data_bytes).
Status CheckCoverage(const std::vector<SafetensorsEntry>& entries, int64_t data_bytes) {
  int64_t covered = 0;
  const SafetensorsEntry* previous = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.end > data_bytes) {
      return CorruptFile(
          fmt::format("tensor {}: ends at byte {} of the data, but there are {}: "
                      "the file is truncated",
                      entry.name, entry.end, data_bytes));
    }
    if (entry.begin < covered) {
      return CorruptFile(
          fmt::format("tensor {}: data_offsets [{}, {}] overlap tensor {}, which "
                      "ends at {}",
                      entry.name, entry.begin, entry.end, previous->name, covered));
    }
    if (entry.begin > covered) {
      return CorruptFile(
          fmt::format("tensor {}: data_offsets [{}, {}] leave a gap, expected to "
                      "start at {}",
                      entry.name, entry.begin, entry.end, covered));
    }
    covered = entry.end;
    previous = &entry;
  }
  if (covered != data_bytes) {
    return CorruptFile(
        fmt::format("{} bytes of data, but the header describes {}", data_bytes, covered));
  }
  return OkStatus();
}

// The JSON text between the length and the data.
Result<std::string_view> HeaderText(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return CorruptFile(fmt::format("{} bytes, a safetensors file has at least 8", file.size()));
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeaderBytes) {
    return CorruptFile(
        fmt::format("a header of {} bytes, at most {} are allowed: this is no "
                    "safetensors file",
                    length, kMaxHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    return CorruptFile(
        fmt::format("a header of {} bytes, but only {} follow: the file is truncated", length,
                    file.size() - kLengthBytes));
  }
  return std::string_view(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
}

Result<SafetensorsHeader> Parse(std::span<const std::byte> file) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(file));
  OCTAVO_ASSIGN_OR_RETURN(const Value root, ParseJson(text, "header", {.max_depth = kMaxDepth}));
  if (!root.is_object()) {
    return CorruptFile(fmt::format("the header is {}, expected an object", root.type_name()));
  }
  SafetensorsHeader header;
  header.data_offset = static_cast<int64_t>(kLengthBytes + text.size());
  for (const auto& [name, value] : root.as_object()) {
    if (name == "__metadata__") {
      const Status status = ReadMetadata(value, header.metadata);
      if (!status.ok()) return status.Annotate(name);
      continue;
    }
    Result<SafetensorsEntry> entry = ReadEntry(name, value);
    if (!entry.ok()) return entry.status().Annotate("tensor " + name);
    header.entries.push_back(std::move(entry).value());
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  OCTAVO_RETURN_IF_ERROR(
      CheckCoverage(header.entries, static_cast<int64_t>(file.size()) - header.data_offset));
  return header;
}

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> file,
                                                 std::string_view what) {
  Result<SafetensorsHeader> header = Parse(file);
  if (!header.ok()) return header.status().Annotate(what);
  return header;
}

int64_t LayOutSafetensors(std::vector<SafetensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const size_t rank_a = StorageRank(a.dtype);
    const size_t rank_b = StorageRank(b.dtype);
    return std::tie(rank_a, a.name) < std::tie(rank_b, b.name);
  });
  int64_t end = 0;
  for (SafetensorsEntry& entry : entries) {
    entry.begin = end;
    end += Elements(entry.shape) * DTypeBytes(entry.dtype);
    entry.end = end;
  }
  return end;
}

std::string WriteSafetensorsHeader(std::span<const SafetensorsEntry> entries,
                                   const std::map<std::string, std::string>& metadata) {
  // Written by hand and not by WriteJson: the library's JSON has no spaces.
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, text] : metadata) {
      json += fmt::format("{}:{},", JsonString(key), JsonString(text));
    }
    json.back() = '}';
    json += ',';
  }
  for (const SafetensorsEntry& entry : entries) {
    json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                        JsonString(entry.name), DTypeName(entry.dtype), fmt::join(entry.shape, ","),
                        entry.begin, entry.end);
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');

  std::string header(kLengthBytes, '\0');
  const uint64_t length = json.size();
  std::memcpy(header.data(), &length, kLengthBytes);
  return header + json;
}

}  // namespace octavo
