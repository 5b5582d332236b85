#include "roofs.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/cpu.h"

namespace octavo {

namespace {

constexpr int kAttempts = 30;  // the best of them counts: other programs only slow us down

// As the benchmarks measure: one thread by its processor time, which leaves out what other programs
// did meanwhile; several by the clock on the wall.
double Seconds(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The best rate of `work` units done by each of `threads` threads at once.
double Rate(int threads, int attempts, double work, const std::function<void(int)>& run) {
  double best = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double start = Seconds(threads);
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(run, t);
    run(0);
    for (std::thread& other : others) other.join();
    best = std::max(best, work * threads / (Seconds(threads) - start));
  }
  return best;
}

#if defined(__x86_64__)
// 20 chains of one instruction, which no compiler spills or merges: enough for two ports and
// latency 5.
#  define OCTAVO_CHAIN(op, a) op " %%zmm30, %%zmm31, %%zmm" a "\n"
// clang-format off
#  define OCTAVO_CHAINS(op)                                                                       \
    OCTAVO_CHAIN(op, "0") OCTAVO_CHAIN(op, "1") OCTAVO_CHAIN(op, "2") OCTAVO_CHAIN(op, "3")       \
    OCTAVO_CHAIN(op, "4") OCTAVO_CHAIN(op, "5") OCTAVO_CHAIN(op, "6") OCTAVO_CHAIN(op, "7")       \
    OCTAVO_CHAIN(op, "8") OCTAVO_CHAIN(op, "9") OCTAVO_CHAIN(op, "10") OCTAVO_CHAIN(op, "11")     \
    OCTAVO_CHAIN(op, "12") OCTAVO_CHAIN(op, "13") OCTAVO_CHAIN(op, "14") OCTAVO_CHAIN(op, "15")   \
    OCTAVO_CHAIN(op, "16") OCTAVO_CHAIN(op, "17") OCTAVO_CHAIN(op, "18") OCTAVO_CHAIN(op, "19")
// clang-format on
#  define OCTAVO_CLOBBERS                                                                    \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

constexpr int64_t kChains = 20;
constexpr int64_t kRounds = 300'000;

// All operands zero: the rate does not depend on them, denormals aside.
void Clear() {
  asm volatile("vzeroall\n" : : : OCTAVO_CLOBBERS);
  asm volatile("vpxord %%zmm30, %%zmm30, %%zmm30\nvpxord %%zmm31, %%zmm31, %%zmm31\n" : : :);
}

void RunDot(int /*thread*/) {
  Clear();
  for (int64_t i = 0; i < kRounds; ++i) {
    asm volatile(OCTAVO_CHAINS("vpdpbusd") : : : OCTAVO_CLOBBERS);
  }
}

void RunFma(int /*thread*/) {
  Clear();
  for (int64_t i = 0; i < kRounds; ++i) {
    asm volatile(OCTAVO_CHAINS("vfmadd231ps") : : : OCTAVO_CLOBBERS);
  }
}
#endif

// Each thread sums its own buffer, far larger than the caches, in four streams.
double ReadRate(int threads) {
  constexpr int64_t kWords = int64_t{32} << 20;  // 256 MiB a thread
  std::vector<std::vector<uint64_t>> buffers(static_cast<size_t>(threads));
  for (auto& buffer : buffers) buffer.assign(static_cast<size_t>(kWords), 1);  // touched, not zero
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);
  return Rate(threads, kAttempts / 3, static_cast<double>(kWords) * 8, [&](int thread) {
    const uint64_t* words = buffers[static_cast<size_t>(thread)].data();
    constexpr int64_t kQuarter = kWords / 4;
    uint64_t sum[4][8] = {};
    for (int64_t i = 0; i < kQuarter; i += 8) {
      for (int64_t stream = 0; stream < 4; ++stream) {
        for (int64_t lane = 0; lane < 8; ++lane) {
          sum[stream][lane] += words[stream * kQuarter + i + lane];
        }
      }
    }
    uint64_t total = 0;
    for (const auto& stream : sum) {
      for (const uint64_t lane : stream) total += lane;
    }
    sums[static_cast<size_t>(thread) * 8] = total;
  });
}

}  // namespace

Roofs MeasureRoofs(int threads) {
  Roofs roofs;
#if defined(__x86_64__)
  constexpr double kInstructions = static_cast<double>(kChains * kRounds);
  if (DetectIsa() >= Isa::kAvx512Vnni)
    roofs.int8_ops = Rate(threads, kAttempts, kInstructions * 128, RunDot);
  if (DetectIsa() >= Isa::kAvx512)
    roofs.float_ops = Rate(threads, kAttempts, kInstructions * 32, RunFma);
#endif
  roofs.read_bytes = ReadRate(threads);
  return roofs;
}

}  // namespace octavo
