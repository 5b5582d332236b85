#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace octavo {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEachIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
    pool.ParallelFor(count, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
    for (const auto& times : runs) EXPECT_EQ(times, 1);
  }
}

TEST_P(ThreadPoolTest, RunsInPlaceInsideATask) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> runs(20 * 30);
  std::atomic<int> strangers = 0;
  pool.ParallelFor(20, [&](int64_t i) {
    const auto thread = std::this_thread::get_id();
    pool.ParallelFor(30, [&](int64_t j) {
      ++runs[static_cast<size_t>(i * 30 + j)];
      if (std::this_thread::get_id() != thread) ++strangers;
    });
  });
  for (const auto& times : runs) EXPECT_EQ(times, 1);
  EXPECT_EQ(strangers, 0);
}

TEST_P(ThreadPoolTest, WhatTasksWroteIsSeenAfterwards) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(64);
  for (int64_t job = 1; job <= 2000; ++job) {
    pool.ParallelFor(64, [&](int64_t i) { values[static_cast<size_t>(i)] += i; });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), job * 64 * 63 / 2);
  }
}

TEST_P(ThreadPoolTest, WakesAfterASleep) {
  ThreadPool pool(GetParam());
  for (int pause_ms : {0, 1, 20}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    std::atomic<int64_t> sum = 0;
    pool.ParallelFor(100, [&](int64_t i) { sum += i; });
    EXPECT_EQ(sum, 4950);
  }
}

// Each of as many tasks as threads waits for all the others: it takes every thread to end.
TEST_P(ThreadPoolTest, AllThreadsTakePart) {
  ThreadPool pool(GetParam());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int job = 0; job < 20; ++job) {
    std::atomic<int> started = 0;
    pool.ParallelFor(GetParam(), [&](int64_t) {
      ++started;
      while (started < GetParam() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    });
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "job " << job;
    if (job % 5 == 4) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_P(ThreadPoolTest, TakesJobsFromSeveralThreads) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 200; ++job) pool.ParallelFor(10, [&](int64_t i) { sum += i; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 45);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 8));

TEST(ThreadPool, StartsAndStopsIdle) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, ZeroTakesWhatTheProcessMayUse) {
  const ThreadPool pool(0);
  EXPECT_GE(pool.num_threads(), 1);
}

TEST(ThreadPoolDeathTest, RefusesANegativeNumber) {
  EXPECT_DEATH(ThreadPool pool(-1), "num_threads >= 0");
}

}  // namespace
}  // namespace octavo
