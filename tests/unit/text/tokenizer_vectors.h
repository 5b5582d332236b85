// Reads the rows of tests/data/tokenizers and compares encodings with them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace octavo {

inline std::filesystem::path TokenizerFolder(std::string_view name) {
  return std::filesystem::path(OCTAVO_TEST_DATA) / "tokenizers" / name;
}

inline std::vector<Value> ReadRows(const std::filesystem::path& path) {
  const std::string text = ReadFile(path).value();
  std::vector<Value> rows;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) {
      rows.push_back(ParseJson(text.substr(begin, end - begin), path.string()).value());
    }
    begin = end + 1;
  }
  return rows;
}

inline Value Integers(const std::vector<int>& values) {
  Value::Array out(values.begin(), values.end());
  return out;
}

inline Value Strings(const std::vector<std::string>& values) {
  Value::Array out(values.begin(), values.end());
  return out;
}

inline Value Offsets(const Encoding& encoding) {
  Value::Array out;
  for (const auto& [begin, end] : encoding.offsets) out.push_back(Value::Array{begin, end});
  return out;
}

// The library has None where we have -1.
inline Value SequenceIds(const Encoding& encoding) {
  Value::Array out;
  for (const int id : encoding.sequence_ids) {
    out.emplace_back();
    if (id >= 0) out.back() = Value(id);
  }
  return out;
}

// Compares those of an encoding's fields that the row has.
inline void ExpectEncoding(const Encoding& encoding, const Value& row) {
  const std::pair<std::string_view, Value> fields[] = {
      {"ids", Integers(encoding.ids)},
      {"tokens", Strings(encoding.tokens)},
      {"offsets", Offsets(encoding)},
      {"type_ids", Integers(encoding.type_ids)},
      {"special_tokens_mask", Integers(encoding.special_tokens_mask)},
      {"sequence_ids", SequenceIds(encoding)},
  };
  for (const auto& [name, actual] : fields) {
    const Value* expected = row.Find(name);
    if (expected == nullptr) continue;
    EXPECT_EQ(WriteJson(*expected), WriteJson(actual)) << name;
  }
}

}  // namespace octavo
