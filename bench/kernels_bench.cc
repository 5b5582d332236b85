// bench_kernels: every kernel family at the shapes of real models, each number beside its share of
// the machine's roof.
//
//   bench_kernels [--benchmark_filter=int8] ; OCTAVO_BENCH_THREADS=1 (default) ; OCTAVO_ISA=...
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "kernels/attention/attention.h"
#include "kernels/gram/gram.h"
#include "kernels/matmul_float/matmul_float.h"
#include "kernels/matmul_int8/matmul_int8.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/silu_mul/silu_mul.h"
#include "roofs.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

// What all benchmarks of a run share.
struct Machine {
  Isa isa;
  Roofs roofs;
  ThreadPool pool;
};

struct MatrixShape {
  const char* name;
  int64_t n;
  int64_t k;
};

constexpr MatrixShape kShapes[] = {
    {"smollm2-135m.o_proj", 576, 576},      {"smollm2-135m.k_proj", 192, 576},
    {"smollm2-135m.qkv", 960, 576},         {"smollm2-135m.gate_up", 3072, 576},
    {"smollm2-135m.down_proj", 576, 1536},  {"smollm2-135m.lm_head", 49152, 576},
    {"llama-3.1-8b.o_proj", 4096, 4096},    {"llama-3.1-8b.up_proj", 14336, 4096},
    {"llama-3.1-8b.down_proj", 4096, 14336}};
constexpr int64_t kRows[] = {1, 4, 32, 128, 512};

size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

std::vector<float> RandomFloats(int64_t count) {
  Rng rng(7);
  std::vector<float> values(At(count));
  for (float& value : values) value = static_cast<float>(rng.Uniform()) - 0.5F;
  return values;
}

std::vector<int8_t> RandomInt8(int64_t count) {
  Rng rng(8);
  std::vector<int8_t> values(At(count));
  for (int8_t& value : values) value = static_cast<int8_t>(static_cast<int>(rng.Below(255)) - 127);
  return values;
}

// With several threads only wall-clock time says what happened; with one, processor time leaves out
// what other programs did meanwhile.
void Register(Machine& machine, const std::string& name,
              const std::function<void(benchmark::State&)>& run) {
  auto* added = benchmark::RegisterBenchmark(name.c_str(), run);
  if (machine.pool.num_threads() > 1) added->UseRealTime();
}

// Rates, and their shares of the two roofs: the nearer one limits.
void Report(benchmark::State& state, double ops, double op_roof, double bytes, double byte_roof) {
  using benchmark::Counter;
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["GOP/s"] = Counter(ops / 1e9, rate);
  state.counters["GB/s"] = Counter(bytes / 1e9, rate);
  if (op_roof > 0) state.counters["of_ops_%"] = Counter(100 * ops / op_roof, rate);
  if (byte_roof > 0) state.counters["of_mem_%"] = Counter(100 * bytes / byte_roof, rate);
}

// Weights that fit in the caches are read from there when they are used again and again; a model's
// are not, so with few rows, where weights are all that counts, benchmarks walk over copies that
// together exceed the caches.
constexpr int64_t kColdBytes = int64_t{512} << 20;

int64_t Copies(int64_t bytes, int64_t m) {
  return m > 4 ? 1 : kColdBytes / bytes + 1;
}

void BenchInt8(benchmark::State& state, Machine& machine, MatrixShape shape, int64_t m) {
  const std::vector<int8_t> values = RandomInt8(shape.n * shape.k);
  const TensorView view{.dtype = DType::kI8,
                        .shape = {shape.n, shape.k},
                        .bytes = reinterpret_cast<const std::byte*>(values.data())};
  std::vector<Int8Weights> weights;
  for (int64_t i = 0; i < Copies(shape.n * shape.k, m); ++i) {
    weights.push_back(Int8Weights::Pack({&view, 1}, machine.isa, machine.pool));
  }
  const std::vector<int8_t> q = RandomInt8(m * shape.k);
  const std::vector<float> row_scales = RandomFloats(m);
  const std::vector<float> weight_scales = RandomFloats(shape.n);
  std::vector<float> y(At(m * shape.n));
  size_t next = 0;
  for (auto _ : state) {
    MultiplyInt8(weights[next], {.codes = q.data(), .scales = row_scales.data(), .m = m},
                 weight_scales, {}, y.data(), shape.n, machine.pool);
    next = (next + 1) % weights.size();
  }
  const auto size = static_cast<double>(shape.n * shape.k);
  Report(state, 2 * size * static_cast<double>(m), machine.roofs.int8_ops, size,
         machine.roofs.read_bytes);
}

void BenchFloat(benchmark::State& state, Machine& machine, MatrixShape shape, int64_t m) {
  const Tensor one =
      FromFloat(RandomFloats(shape.n * shape.k), DType::kBF16, {shape.n, shape.k}).value();
  std::vector<Tensor> weights;
  for (int64_t i = 0; i < Copies(one.num_bytes(), m); ++i) weights.push_back(one.Clone());
  const std::vector<float> x = RandomFloats(m * shape.k);
  std::vector<float> y(At(m * shape.n));
  size_t next = 0;
  for (auto _ : state) {
    MultiplyFloat(weights[next], {}, x.data(), shape.k, m, y.data(), shape.n, machine.isa,
                  machine.pool);
    next = (next + 1) % weights.size();
  }
  const auto size = static_cast<double>(shape.n * shape.k);
  Report(state, 2 * size * static_cast<double>(m), machine.roofs.float_ops, 2 * size,
         machine.roofs.read_bytes);
}

struct AttentionCase {
  const char* name;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
};
constexpr AttentionCase kAttention[] = {{"smollm2-135m", 9, 3, 64}, {"llama-3.1-8b", 32, 8, 128}};

struct AttentionLengths {
  int64_t rows;  // new tokens, at the end of ...
  int64_t tokens;
};
constexpr AttentionLengths kLengths[] = {{2048, 2048}, {512, 512}, {1, 256}, {1, 2048}, {1, 16384}};

void BenchAttention(benchmark::State& state, Machine& machine, AttentionCase c, int64_t rows,
                    int64_t tokens) {
  const int64_t count = tokens * c.kv_heads * c.head_dim;
  const Tensor keys = FromFloat(RandomFloats(count), DType::kBF16, {count}).value();
  const Tensor values = keys.Clone();
  const int64_t width = c.heads * c.head_dim;
  const std::vector<float> q = RandomFloats(rows * width);
  std::vector<float> out(At(rows * width));
  const AttentionSequence sequence{.first_row = 0,
                                   .rows = rows,
                                   .first_position = tokens - rows,
                                   .kv = {.dtype = DType::kBF16,
                                          .keys = keys.view().bytes,
                                          .values = values.view().bytes,
                                          .token_stride = c.kv_heads * c.head_dim,
                                          .head_stride = c.head_dim}};
  const AttentionShape shape{c.heads, c.kv_heads, c.head_dim, 0.125F};
  for (auto _ : state) {
    Attend(shape, {&sequence, 1}, q.data(), width, out.data(), width, machine.isa, machine.pool);
  }
  // Two products over the visible pairs.
  const double pairs = static_cast<double>(rows) * static_cast<double>(2 * tokens - rows + 1) / 2;
  Report(state, 4 * pairs * static_cast<double>(width), machine.roofs.float_ops,
         static_cast<double>(2 * keys.num_bytes()), machine.roofs.read_bytes);
}

void BenchGram(benchmark::State& state, Machine& machine, int64_t m, int64_t k) {
  const std::vector<float> x = RandomFloats(m * k);
  std::vector<float> h(At(k * k));
  for (auto _ : state) AddGram(x.data(), k, m, k, 1.0F, h, machine.isa, machine.pool);
  Report(state, static_cast<double>(m) * static_cast<double>(k * (k + 1)), machine.roofs.float_ops,
         static_cast<double>(k * k * 8), machine.roofs.read_bytes);
}

// Row-wise kernels: bytes read and written count.
void RegisterRowWise(Machine& machine, int64_t m) {
  constexpr int64_t kWidth = 1536;
  const auto report = [&machine, m](benchmark::State& state, int64_t bytes_an_element) {
    Report(state, static_cast<double>(m * kWidth), 0,
           static_cast<double>(m * kWidth * bytes_an_element), machine.roofs.read_bytes);
  };
  const auto add = [&](const std::string& family, const auto& run) {
    Register(machine, fmt::format("{}/{}x{}", family, m, kWidth), run);
  };
  add("quantize_rows", [&machine, m, report](benchmark::State& state) {
    const std::vector<float> x = RandomFloats(m * kWidth);
    std::vector<int8_t> codes(x.size());
    std::vector<float> scales(At(m));
    for (auto _ : state) {
      QuantizeRowsInt8(x.data(), kWidth, m, kWidth, ActivationRule::kEngine, codes.data(),
                       scales.data(), machine.isa, machine.pool);
    }
    report(state, 5);
  });
  add("rms_norm", [&machine, m, report](benchmark::State& state) {
    const std::vector<float> x = RandomFloats(m * kWidth);
    const std::vector<float> weight = RandomFloats(kWidth);
    std::vector<float> y(x.size());
    for (auto _ : state) {
      RmsNorm(x.data(), kWidth, m, weight, 1e-5F, y.data(), kWidth, machine.isa, machine.pool);
    }
    report(state, 8);
  });
  add("rope", [&machine, m, report](benchmark::State& state) {
    std::vector<float> x = RandomFloats(m * kWidth);
    const std::vector<float> cos(At(m * 32), 0.6F);
    const std::vector<float> sin(At(m * 32), 0.8F);
    for (auto _ : state) {
      ApplyRope(x.data(), kWidth, m, kWidth / 64, 64, 64, cos.data(), sin.data(), machine.isa,
                machine.pool);
    }
    report(state, 8);
  });
  add("silu_mul", [&machine, m, report](benchmark::State& state) {
    const std::vector<float> x = RandomFloats(2 * m * kWidth);
    std::vector<float> y(At(m * kWidth));
    for (auto _ : state) {
      SiluMul(x.data(), 2 * kWidth, m, kWidth, y.data(), kWidth, machine.isa, machine.pool);
    }
    report(state, 12);
  });
}

void RegisterAll(Machine& machine) {
  using State = benchmark::State;
  for (const MatrixShape& shape : kShapes) {
    for (const int64_t m : kRows) {
      const std::string size = fmt::format("{}/n{}_k{}/m{}", shape.name, shape.n, shape.k, m);
      Register(machine, "matmul_int8/" + size,
               [&machine, shape, m](State& state) { BenchInt8(state, machine, shape, m); });
      Register(machine, "matmul_bf16/" + size,
               [&machine, shape, m](State& state) { BenchFloat(state, machine, shape, m); });
    }
  }
  for (const AttentionCase& c : kAttention) {
    for (const AttentionLengths& lengths : kLengths) {
      Register(machine,
               fmt::format("attention/{}/rows{}_of{}", c.name, lengths.rows, lengths.tokens),
               [&machine, c, lengths](State& state) {
                 BenchAttention(state, machine, c, lengths.rows, lengths.tokens);
               });
    }
  }
  for (const int64_t k : {576, 1536, 4096}) {
    Register(machine, fmt::format("gram/m2048_k{}", k),
             [&machine, k](State& state) { BenchGram(state, machine, 2048, k); });
  }
  for (const int64_t m : {1, 512}) RegisterRowWise(machine, m);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const octavo::Result<octavo::Isa> isa = octavo::SelectIsa();
  if (!isa.ok()) {
    fmt::print(stderr, "{}\n", isa.status().message());
    return 2;
  }
  const char* wanted = std::getenv("OCTAVO_BENCH_THREADS");
  const int threads = wanted == nullptr ? 1 : std::max(1, std::atoi(wanted));
  octavo::Machine machine{*isa, octavo::MeasureRoofs(threads), octavo::ThreadPool(threads)};
  fmt::print(stderr,
             "{}, {}, {} thread(s); roofs: {:.0f} GOP/s int8, {:.0f} GFLOP/s f32, {:.1f} GB/s\n",
             octavo::CpuModelName(), octavo::IsaName(*isa), threads, machine.roofs.int8_ops / 1e9,
             machine.roofs.float_ops / 1e9, machine.roofs.read_bytes / 1e9);
  octavo::RegisterAll(machine);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
