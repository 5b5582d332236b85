// What `octavo bench kernels` measures with: turns, cases, and a rival that does the same work.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>

#include "bench/families/inputs.h"
#include "bench/kernel_bench.h"
#include "bench/onednn_matmul.h"
#include "bench/timing.h"
#include "kernels/matmul_float/matmul_float.h"
#include "kernels/matmul_int8/matmul_int8.h"
#include "quant/scheme.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

TEST(MeasureInTurns, CallsEveryContenderAndKeepsThemApart) {
  ThreadPool pool(1);
  const Context context{.pool = pool};
  int first = 0;
  int second = 0;
  const std::function<void()> contenders[] = {[&] { ++first; }, [&] { ++second; }};
  const std::vector<double> seconds = MeasureInTurns(contenders, 1e-6, context);
  ASSERT_EQ(seconds.size(), 2u);
  for (const double time : seconds) EXPECT_GE(time, 0);
  EXPECT_GE(first, 4);  // once to warm up
  EXPECT_GE(second, 4);
}

TEST(MeasureInTurns, StopsOnRequest) {
  ThreadPool pool(1);
  const std::atomic<bool> cancelled = true;
  const Context context{.pool = pool, .cancelled = &cancelled};
  const std::function<void()> nothing = [] {};
  EXPECT_EQ(MeasureInTurns({&nothing, 1}, 1e9, context).size(), 1u);
}

TEST(KernelCases, AreDistinctAndHaveAPrice) {
  ThreadPool pool(1);
  const CaseOptions options{.isa = DetectIsa(), .pool = pool, .memory = 1 << 20};
  const std::vector<KernelCase> cases = SelectCases(options, "").value();
  std::set<std::string> kernels;
  std::set<std::string> names;
  for (const KernelCase& one : cases) {
    kernels.insert(one.kernel);
    EXPECT_TRUE(names.insert(one.kernel + " " + one.shape).second) << one.kernel << one.shape;
    EXPECT_GT(one.bytes, 0);
    EXPECT_GT(one.footprint, 0);
    EXPECT_LE(one.isa, options.isa);
  }
  for (const char* kernel :
       {"matmul_int8", "matmul_int4 g64", "matmul_bf16", "matmul_f32", "attention", "gram",
        "rms_norm", "quantize_rows", "rope", "silu_mul"}) {
    EXPECT_TRUE(kernels.contains(kernel)) << kernel;
  }
  EXPECT_EQ(SelectCases(options, "no such kernel").value().size(), 0u);
  const auto rms_norm = SelectCases(options, "rms_norm k 576, m (1|2)$").value();
  ASSERT_EQ(rms_norm.size(), 1u);
  EXPECT_EQ(rms_norm[0].kernel, "rms_norm");
  EXPECT_EQ(SelectCases(options, "rms_norm (").status().code(), StatusCode::kInvalidArgument);
}

TEST(KernelCases, EverySchemeRuns) {
  ThreadPool pool(1);
  const Context context{.pool = pool, .isa = DetectIsa()};
  const CaseOptions options{.isa = DetectIsa(), .pool = pool, .memory = 1 << 20};
  ReadRates read_rates(1e-4, context);
  for (const Scheme* scheme : AllSchemes()) {
    SCOPED_TRACE(scheme->name);
    if (scheme->examples.empty()) continue;
    const auto cases =
        SelectCases(options, "^" + std::string(scheme->name) + ": .*down_proj.*m 1$").value();
    ASSERT_EQ(cases.size(), scheme->examples.size());
    const KernelResult result =
        MeasureKernel(cases[0], {.int8 = 1e12, .bf16 = 0, .f32 = 1e11}, read_rates, 1e-4, context);
    EXPECT_GT(result.roof_share, 0);
  }
}

TEST(KernelCases, AMatmulIsMeasuredBesideItsRival) {
  ThreadPool pool(2);
  const Context context{.pool = pool, .isa = DetectIsa()};
  const CaseOptions options{.isa = DetectIsa(), .pool = pool, .memory = 1 << 20};
  const std::vector<KernelCase> cases =
      SelectCases(options, "matmul_int8 smollm2-135m o_proj").value();
  ASSERT_FALSE(cases.empty());
  ReadRates read_rates(1e-3, context);
  const KernelResult result =
      MeasureKernel(cases[0], {.int8 = 1e12, .bf16 = 0, .f32 = 1e11}, read_rates, 1e-3, context);
  EXPECT_GT(result.seconds, 0);
  EXPECT_GT(result.roof_share, 0);
  EXPECT_EQ(result.roof, "memory");  // one row: two operations a byte
  EXPECT_EQ(read_rates.measured().size(), 1u);
}

TEST(OnednnMatmul, ComputesWhatOurKernelsCompute) {
  ThreadPool pool(1);
  const int64_t m = 5;
  const int64_t n = 70;
  const int64_t k = 36;
  for (const DType dtype : {DType::kI8, DType::kBF16, DType::kF32}) {
    SCOPED_TRACE(DTypeName(dtype));
    const Tensor w = RandomTensor(dtype, {n, k});
    const Tensor x = RandomTensor(dtype, {m, k});
    const Tensor scales = RandomTensor(DType::kF32, {n});
    std::vector<float> actual(static_cast<size_t>(m * n));
    std::vector<float> expected(actual.size());
    const bool int8 = dtype == DType::kI8;
    const auto rival = OnednnMatmul::Make(w, int8 ? scales.data<float>() : std::span<const float>(),
                                          x, actual.data(), DetectIsa(), 2);
    if (rival == nullptr) continue;  // no such matmul on this processor
    rival->Run();
    if (int8) {
      const TensorView part = w;
      const std::vector<float> ones(static_cast<size_t>(m), 1.0F);
      MultiplyInt8(Int8Weights::Pack({&part, 1}, DetectIsa(), pool),
                   {.codes = x.data<int8_t>().data(), .scales = ones.data(), .m = m},
                   scales.data<float>(), {}, expected.data(), n, pool);
    } else {
      const Tensor wide = ToFloatTensor(x).value();
      MultiplyFloat(w, {}, wide.data<float>().data(), k, m, expected.data(), n, DetectIsa(), pool);
    }
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], 1e-5F * (1 + std::abs(expected[i]))) << i;
    }
  }
}

}  // namespace
}  // namespace octavo
