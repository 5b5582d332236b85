// The one thread pool: fixed tiles of work, done by whoever is free, with results that do not
// depend on who did them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

// A pool of `num_threads` threads, the caller of ParallelFor among them. Workers spin for a moment
// after a job, then sleep.
class ThreadPool {
 public:
  // num_threads >= 1; 0 takes the number of processors this process may use.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(i) for each i in [0, count), each once, in any order and on any thread, and returns
  // when all are done. A task writes only what belongs to its i, so that results do not depend on
  // the number of threads. Called from inside a task it runs in place. A task throws
  // nothing.
  void ParallelFor(int64_t count, const std::function<void(int64_t)>& task);

 private:
  void WorkerLoop();
  // Claims and runs tasks of the current job until none is left to claim.
  void RunTasks() noexcept;
  // Neighbouring tasks [begin, end) that are now the caller's; none when all are claimed.
  struct Range {
    int64_t begin;
    int64_t end;
  };
  Range Claim();

  std::vector<std::thread> workers_;
  std::mutex run_mutex_;  // one ParallelFor at a time

  // The current job. Whoever has claimed a task keeps the job open until it is done, so count_ and
  // task_ are read only then; a worker that comes late finds nothing, and nobody waits for it.
  int64_t count_ = 0;
  const std::function<void(int64_t)>* task_ = nullptr;
  std::atomic<int64_t> unclaimed_{0};
  std::atomic<int64_t> done_{0};

  // Workers sleep until the number of jobs changes.
  std::atomic<uint64_t> jobs_{0};
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stop_{false};
};

}  // namespace octavo
