#include "kernels/hadamard/hadamard.h"

#include <bit>

#include "kernel_testing.h"
#include "kernels/hadamard/kernels.h"

namespace octavo {
namespace {

size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

// Element (i, j) of the block, by its definition.
double Element(const HadamardBlock& block, int64_t i, int64_t j) {
  const double sign = std::popcount(static_cast<uint64_t>(i & j)) % 2 == 0 ? 1 : -1;
  return sign * Wide(block.scale) * Wide(block.before == nullptr ? 1 : block.before[i]) *
         Wide(block.after == nullptr ? 1 : block.after[j]);
}

std::vector<float> RandomSigns(Rng& rng, int64_t n) {
  std::vector<float> signs(At(n));
  for (float& sign : signs) sign = rng.Below(2) == 0 ? 1.0F : -1.0F;
  return signs;
}

TEST(Hadamard, ListObeysCaps) {
  ExpectListObeysCaps(HadamardKernels());
}

TEST(Hadamard, EveryKernelMultipliesByTheMatrix) {
  constexpr uint64_t kSeed = 90;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (const int64_t n : {1, 2, 4, 8, 16, 32, 64, 128, 512}) {
    SCOPED_TRACE(n);
    const int64_t m = 3;
    const int64_t k = 2 * n;
    const int64_t ldx = k + 5;
    const std::vector<float> x = RandomFloats(rng, m * ldx);
    const std::vector<float> before = RandomSigns(rng, n);
    const std::vector<float> after = RandomSigns(rng, n);
    const HadamardBlock block{
        .n = n, .before = before.data(), .after = after.data(), .scale = 0.25F};
    ForEachKernel(HadamardKernels(), [&](const HadamardKernel& kernel) {
      ThreadPool pool(2);
      std::vector<float> y(At(m * (k + 1)), kUnset);
      ApplyHadamard(block, x.data(), ldx, m, k, y.data(), k + 1, kernel.isa, pool);
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t j = 0; j < k; ++j) {
          double expected = 0;
          double norm = 0;
          for (int64_t i = 0; i < n; ++i) {
            const double part = Wide(x[At(row * ldx + j / n * n + i)]) * Element(block, i, j % n);
            expected += part;
            norm += std::abs(part);
          }
          ASSERT_NEAR(Wide(y[At(row * (k + 1) + j)]), expected, 0x1p-20 * norm) << row << " " << j;
        }
        ASSERT_EQ(y[At(row * (k + 1) + k)], kUnset);
      }
    });
  }
}

TEST(Hadamard, KernelsAreBitEqualAndWorkInPlace) {
  Rng rng(91);
  for (const int64_t n : {4, 8, 16, 256, 1024}) {
    const std::vector<float> x = RandomFloats(rng, 2 * n);
    ThreadPool pool(1);
    const HadamardBlock block{.n = n, .scale = 1 / std::sqrt(static_cast<float>(n))};
    std::vector<float> expected(x.size());
    ApplyHadamard(block, x.data(), n, 2, n, expected.data(), n, Isa::kRef, pool);
    ForEachKernel(HadamardKernels(), [&](const HadamardKernel& kernel) {
      std::vector<float> y = x;
      ApplyHadamard(block, y.data(), n, 2, n, y.data(), n, kernel.isa, pool);
      ExpectSameBits(y, expected);
      // H / sqrt(n) is its own inverse.
      ApplyHadamard(block, y.data(), n, 2, n, y.data(), n, kernel.isa, pool);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 1e-5F);
    });
  }
}

}  // namespace
}  // namespace octavo
