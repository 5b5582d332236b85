// Access to the test data and to what every test of a whole model needs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/context.h"
#include "io/safetensors.h"
#include "support/temporary_folder.h"

namespace octavo::testing {

inline std::filesystem::path TestData(const std::string& path) {
  return std::filesystem::path(OCTAVO_TEST_DATA) / path;
}

// A context with its own pool, for `threads` threads, on the best instruction set or the one
// OCTAVO_ISA names.
struct TestContext {
  explicit TestContext(int threads = 2)
      : pool(threads), context{.pool = pool, .isa = SelectIsa().value()} {}
  ThreadPool pool;
  Context context;
};

}  // namespace octavo::testing

// Asserts that a Status or Result is ok and shows its message otherwise.
#define ASSERT_OK(expression)                                                       \
  do {                                                                              \
    const auto& octavo_status_ = (expression);                                      \
    ASSERT_TRUE(octavo_status_.ok()) << ::octavo::testing::Message(octavo_status_); \
  } while (false)

namespace octavo::testing {
inline std::string Message(const Status& status) {
  return status.ToString();
}
template <typename T>
std::string Message(const Result<T>& result) {
  return result.status().ToString();
}
}  // namespace octavo::testing
