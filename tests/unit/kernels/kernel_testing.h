// What the kernel tests share: seeded inputs, and every kernel of a list that this machine can run.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernels/kernel.h"

namespace octavo {

// Calls check(kernel) for each kernel that this machine can run. A family's public function picks
// `kernel` when it is called with kernel.isa.
template <typename Record, typename Check>
void ForEachKernel(std::span<const Record> kernels, const Check& check) {
  for (const Record& kernel : kernels) {
    if (kernel.isa > DetectIsa()) continue;
    SCOPED_TRACE(kernel.name);
    check(kernel);
  }
}

// The list ends with the portable kernel, is ordered from best to portable, and a cap is obeyed.
template <typename Record>
void ExpectListObeysCaps(std::span<const Record> kernels) {
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(kernels.back().isa, Isa::kRef);
  for (size_t i = 1; i < kernels.size(); ++i) EXPECT_GE(kernels[i - 1].isa, kernels[i].isa);
  for (const Isa cap : {Isa::kRef, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    EXPECT_LE(BestKernel(kernels, cap).isa, cap);
  }
  for (const Record& kernel : kernels) EXPECT_EQ(BestKernel(kernels, kernel.isa).name, kernel.name);
}

// For comparisons in float64; Clang takes even double{value} for a slip.
inline double Wide(float value) {
  return static_cast<double>(value);
}

// `count` floats, roughly normal, times `scale`.
inline std::vector<float> RandomFloats(Rng& rng, int64_t count, double scale = 1.0) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    const double sum = rng.Uniform() + rng.Uniform() + rng.Uniform() + rng.Uniform() - 2.0;
    value = static_cast<float>(sum * 1.7 * scale);
  }
  return values;
}

inline std::vector<int8_t> RandomInt8(Rng& rng, int64_t count) {
  std::vector<int8_t> values(static_cast<size_t>(count));
  for (int8_t& value : values) value = static_cast<int8_t>(static_cast<int>(rng.Below(256)) - 128);
  return values;
}

// Bit equality, so that NaN equals NaN and 0 differs from -0.
inline void ExpectSameBits(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "at " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

inline constexpr float kUnset = 12345.0F;  // what outputs hold before a call

}  // namespace octavo
