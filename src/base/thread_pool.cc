#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace octavo {

namespace {

// How long a worker looks for the next job before it sleeps: longer than the gap between two
// layers, shorter than anyone notices.
constexpr auto kSpinTime = std::chrono::microseconds(200);

// About 50 microseconds.
constexpr int kSpinsBeforeYield = 1000;

thread_local bool inside_task = false;

int AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  OCTAVO_CHECK(num_threads >= 0) << num_threads;
  const int threads = num_threads > 0 ? num_threads : AvailableProcessors();
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { WorkerLoop(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(sleep_mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t count, const std::function<void(int64_t)>& task) {
  if (workers_.empty() || count <= 1 || inside_task) {
    for (int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  std::lock_guard run_lock(run_mutex_);
  count_ = count;
  task_ = &task;
  done_.store(0, std::memory_order_relaxed);
  unclaimed_.store(count, std::memory_order_release);
  {
    std::lock_guard lock(sleep_mutex_);
    jobs_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  inside_task = true;
  RunTasks();
  inside_task = false;
  // The others are nearly done, or were put aside by the system: then they need this processor.
  for (int spins = 0; done_.load(std::memory_order_acquire) < count; ++spins) {
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

ThreadPool::Range ThreadPool::Claim() {
  int64_t unclaimed = unclaimed_.load(std::memory_order_acquire);
  while (unclaimed > 0) {
    // Half of this thread's share of what is left: neighbouring tasks stay together, few claims are
    // needed, and the last ones are small.
    const int64_t count = std::max<int64_t>(1, unclaimed / (2 * num_threads()));
    if (unclaimed_.compare_exchange_weak(unclaimed, unclaimed - count, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      return {count_ - unclaimed, count_ - unclaimed + count};
    }
  }
  return {0, 0};
}

void ThreadPool::RunTasks() noexcept {
  int64_t done = 0;
  for (Range range = Claim(); range.begin < range.end; range = Claim()) {
    for (int64_t i = range.begin; i < range.end; ++i) (*task_)(i);
    done += range.end - range.begin;
  }
  if (done > 0) done_.fetch_add(done, std::memory_order_release);
}

void ThreadPool::WorkerLoop() {
  inside_task = true;
  uint64_t seen = 0;
  const auto has_news = [&] { return jobs_.load(std::memory_order_acquire) != seen || stop_; };
  while (true) {
    const auto sleep_after = std::chrono::steady_clock::now() + kSpinTime;
    while (!has_news()) {
      Pause();
      if (std::chrono::steady_clock::now() < sleep_after) continue;
      std::unique_lock lock(sleep_mutex_);
      wake_.wait(lock, has_news);
    }
    if (stop_) return;
    seen = jobs_.load(std::memory_order_acquire);
    RunTasks();
  }
}

}  // namespace octavo
