#include "bench/roofs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "bench/timing.h"
#include "tensor/tensor.h"

namespace octavo {

namespace {

// One task a thread, some hundred microseconds of work: more would seldom run undisturbed.
double Rate(double work_a_task, double seconds, const Context& context,
            const std::function<void(int64_t)>& task) {
  const int threads = context.pool.num_threads();
  const std::function<void()> run = [&] { context.pool.ParallelFor(threads, task); };
  return work_a_task * threads / MeasureInTurns({&run, 1}, seconds, context)[0];
}

#if defined(__x86_64__)

// 12 chains of one instruction, which no compiler spills or merges: enough for two ports and
// latency 6. All operands are zero: rates do not depend on them, denormals aside.
// clang-format off
#  define OCTAVO_CHAIN(op, r, a) op " %%" r "15, %%" r "14, %%" r a "\n"
#  define OCTAVO_CHAINS(op, r)                                                              \
    OCTAVO_CHAIN(op, r, "0") OCTAVO_CHAIN(op, r, "1") OCTAVO_CHAIN(op, r, "2")              \
    OCTAVO_CHAIN(op, r, "3") OCTAVO_CHAIN(op, r, "4") OCTAVO_CHAIN(op, r, "5")              \
    OCTAVO_CHAIN(op, r, "6") OCTAVO_CHAIN(op, r, "7") OCTAVO_CHAIN(op, r, "8")              \
    OCTAVO_CHAIN(op, r, "9") OCTAVO_CHAIN(op, r, "10") OCTAVO_CHAIN(op, r, "11")
// What AVX2 has for bytes: products in pairs, pairs of pairs, their sum.
#  define OCTAVO_BYTES(a)                                                                   \
    "vpmaddubsw %%ymm15, %%ymm14, %%ymm13\nvpmaddwd %%ymm15, %%ymm13, %%ymm13\n"            \
    "vpaddd %%ymm13, %%ymm" a ", %%ymm" a "\n"
// clang-format on
#  define OCTAVO_CLOBBERS                                                                    \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#  define OCTAVO_RUN(name, code)                                                      \
    void name(int64_t) {                                                              \
      asm volatile("vzeroall\n" : : : OCTAVO_CLOBBERS);                               \
      for (int64_t i = 0; i < kRounds; ++i) asm volatile(code : : : OCTAVO_CLOBBERS); \
    }

constexpr int64_t kChains = 12;
constexpr int64_t kRounds = 100'000;

OCTAVO_RUN(RunVnni, OCTAVO_CHAINS("vpdpbusd", "zmm"))
OCTAVO_RUN(RunBf16, OCTAVO_CHAINS("vdpbf16ps", "zmm"))
OCTAVO_RUN(RunFma512, OCTAVO_CHAINS("vfmadd231ps", "zmm"))
OCTAVO_RUN(RunFma256, OCTAVO_CHAINS("vfmadd231ps", "ymm"))
OCTAVO_RUN(RunBytes256,
           OCTAVO_BYTES("0") OCTAVO_BYTES("1") OCTAVO_BYTES("2") OCTAVO_BYTES("3") OCTAVO_BYTES("4")
               OCTAVO_BYTES("5") OCTAVO_BYTES("6") OCTAVO_BYTES("7") OCTAVO_BYTES("8")
                   OCTAVO_BYTES("9") OCTAVO_BYTES("10") OCTAVO_BYTES("11"))

// Reads [bytes, bytes + size), size a multiple of 256, and asks for what lies 4 KiB ahead, as the
// kernels do: the processor's own foresight ends with each page.
void ReadWide(const std::byte* bytes, int64_t size) {
  for (const std::byte* end = bytes + size; bytes < end; bytes += 256) {
    asm volatile(
        "vmovups (%0), %%zmm0\nprefetcht0 4096(%0)\n"
        "vmovups 64(%0), %%zmm1\nprefetcht0 4160(%0)\n"
        "vmovups 128(%0), %%zmm2\nprefetcht0 4224(%0)\n"
        "vmovups 192(%0), %%zmm3\nprefetcht0 4288(%0)\n"
        :
        : "r"(bytes)
        : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
  }
}

#endif  // __x86_64__

void ReadPortable(const std::byte* bytes, int64_t size) {
  uint64_t sum[8] = {};
  for (int64_t i = 0; i < size; i += 64) {
    uint64_t words[8];
    std::memcpy(words, bytes + i, sizeof(words));
    for (size_t lane = 0; lane < 8; ++lane) sum[lane] += words[lane];
  }
  for (uint64_t& lane : sum) asm volatile("" : "+r"(lane));  // keeps the loop
}

void Read(const std::byte* bytes, int64_t size) {
#if defined(__x86_64__)
  if (DetectIsa() >= Isa::kAvx512) return ReadWide(bytes, size);
#endif
  ReadPortable(bytes, size);
}

}  // namespace

ArithmeticRoofs MeasureArithmetic([[maybe_unused]] double seconds,
                                  [[maybe_unused]] const Context& context) {
  ArithmeticRoofs roofs;
#if defined(__x86_64__)
  constexpr auto kInstructions = static_cast<double>(kChains * kRounds);
  const auto measure = [&](double operations, void (*run)(int64_t)) {
    return Rate(kInstructions * operations, seconds, context, run);
  };
  const Isa isa = DetectIsa();
  if (isa >= Isa::kAvx512Vnni)
    roofs.int8 = measure(128, RunVnni);
  else if (isa >= Isa::kAvx2)
    roofs.int8 = measure(64, RunBytes256);
  if (isa >= Isa::kAvx512)
    roofs.f32 = measure(32, RunFma512);
  else if (isa >= Isa::kAvx2)
    roofs.f32 = measure(16, RunFma256);
  if (isa >= Isa::kAvx512 && __builtin_cpu_supports("avx512bf16")) {
    roofs.bf16 = measure(64, RunBf16);
  }
#endif
  return roofs;
}

double MeasureReadRate(int64_t footprint, double seconds, const Context& context) {
  constexpr int64_t kChunk = int64_t{64} << 10;   // of one task
  constexpr int64_t kAtATime = int64_t{4} << 20;  // of one call: some hundred microseconds
  const int64_t size = std::max(footprint, kChunk) / kChunk * kChunk;
  const int64_t call = std::min(size, kAtATime);
  Tensor buffer = Tensor::InLargePages(DType::kU8, {size});
  // Pages that nobody wrote to are all the same one.
  std::memset(buffer.bytes(), 1, static_cast<size_t>(size));
  int64_t next = 0;
  const std::function<void()> run = [&] {
    if (next + call > size) next = 0;
    const std::byte* from = buffer.bytes() + next;
    context.pool.ParallelFor(call / kChunk, [&](int64_t i) { Read(from + i * kChunk, kChunk); });
    next += call;
  };
  return static_cast<double>(call) / MeasureInTurns({&run, 1}, seconds, context)[0];
}

Roofs MeasureRoofs(int threads) {
  constexpr double kSeconds = 0.3;
  ThreadPool pool(threads);
  const Context context{.pool = pool};
  const ArithmeticRoofs arithmetic = MeasureArithmetic(kSeconds, context);
  return {.int8_ops = arithmetic.int8,
          .float_ops = arithmetic.f32,
          .read_bytes = MeasureReadRate(int64_t{1} << 30, kSeconds, context)};
}

double ReadRates::BytesPerSecond(int64_t footprint) {
  const auto power = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max(footprint, int64_t{64} << 10))));
  const auto found = measured_.find(power);
  if (found != measured_.end()) return found->second;
  return measured_[power] = MeasureReadRate(power, seconds_, context_);
}

}  // namespace octavo
