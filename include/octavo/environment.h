// Environment: what long work gets from the program that embeds the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

namespace octavo {

// Every member may be left as it is. The functions are called from the thread that called the
// library.
struct Environment {
  int threads = 0;  // 0: as many as the processors that this process may use
  std::function<void(std::string_view message)> on_warning;
  std::function<void(std::string_view message)> on_info;
  // What is being done ("quantize"), how much of it is done, how much there is.
  std::function<void(std::string_view work, int64_t done, int64_t total)> on_progress;
  // Borrowed; set to true by any thread, it ends the work: with what there is of a text, else with
  // StatusCode::kCancelled.
  const std::atomic<bool>* cancelled = nullptr;
};

}  // namespace octavo
