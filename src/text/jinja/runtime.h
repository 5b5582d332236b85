// What one rendering may use: bounds on its work, and the clock.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace octavo::jinja {

class Object;

// A template is a program from a stranger; each bound ends it with an error instead of a hang.
struct Limits {
  int64_t max_steps = 10'000'000;          // nodes evaluated and items visited
  int64_t max_bytes = int64_t{512} << 20;  // of all values made, whether they live or not
  int64_t max_output_bytes = int64_t{64} << 20;
  int max_depth = 400;  // nodes open at once; a macro call takes about seven
  // Whether what is undefined prints as nothing; else it is an error (Jinja's StrictUndefined).
  bool print_undefined = true;
};

class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}

  Status ChargeSteps(int64_t count) {
    if (count > limits_.max_steps - steps_) return TooManySteps();
    steps_ += count;
    return OkStatus();
  }
  // To be called before memory is taken.
  Status ChargeBytes(int64_t count) {
    if (count < 0 || count > limits_.max_bytes - bytes_) return TooManyBytes();
    bytes_ += count;
    return OkStatus();
  }
  // For `count` items of a new list.
  Status ChargeItems(size_t count);
  // Searching costs at worst the product of both lengths.
  Status ChargeSearch(std::string_view text, std::string_view part);

  // Objects that could hold each other in a circle; all are cleared when rendering ends.
  void Keep(std::shared_ptr<Object> object) { kept_.push_back(std::move(object)); }
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Limits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }
  // Whether printed text is escaped: inside {% autoescape true %}.
  bool autoescape = false;

 private:
  Status TooManySteps() const;
  Status TooManyBytes() const;

  Limits limits_;
  std::tm now_;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
  std::vector<std::shared_ptr<Object>> kept_;
};

}  // namespace octavo::jinja
