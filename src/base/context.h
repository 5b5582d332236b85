// Context: what long work gets from its caller instead of reaching for globals.
#pragma once

#include <atomic>

#include "base/cpu.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace octavo {

// All members are borrowed and outlive the call. `cancelled` is set by Ctrl-C or by an embedding
// program; long loops look at it.
struct Context {
  ThreadPool& pool;
  Isa isa = Isa::kRef;  // what kernels may use (SelectIsa)
  Logger& log = NullLogger();
  Progress& progress = NullProgress();
  const std::atomic<bool>* cancelled = nullptr;

  Status CheckCancelled() const {
    if (cancelled == nullptr || !cancelled->load(std::memory_order_relaxed)) return OkStatus();
    return Cancelled("stopped on request");
  }
};

}  // namespace octavo
