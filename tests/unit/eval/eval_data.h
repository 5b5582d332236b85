// Access to the vectors that lm-evaluation-harness made (tests/data/eval).
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/golden_files.h"

namespace octavo::testing {

inline std::string ReadEvalText(const std::string& path) {
  return ReadFile(TestData("eval/" + path)).value();
}

inline Value ReadEvalJson(const std::string& path) {
  return ParseJson(ReadEvalText(path), path).value();
}

// The rows of a file of JSON lines.
inline std::vector<Value> ReadEvalRows(const std::string& path) {
  std::vector<Value> rows;
  std::istringstream lines(ReadEvalText(path));
  for (std::string line; std::getline(lines, line);) rows.push_back(ParseJson(line, path).value());
  EXPECT_FALSE(rows.empty()) << path;
  return rows;
}

template <typename Integer>
std::vector<Integer> IntegersOf(const Value& list) {
  std::vector<Integer> integers;
  for (const Value& value : list.as_array())
    integers.push_back(static_cast<Integer>(value.as_int()));
  return integers;
}

}  // namespace octavo::testing
