#include "kernels/round_rows/round_rows.h"

#include <algorithm>
#include <limits>

#include "kernel_testing.h"
#include "kernels/round_rows/kernels.h"

namespace octavo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Rounded {
  std::vector<float> values;
  std::vector<float> scales;
};

Rounded Round(const std::vector<float>& x, int64_t m, int64_t k, int64_t ldx,
              const RowRounding& rounding, Isa isa, int threads = 1) {
  ThreadPool pool(threads);
  Rounded result{std::vector<float>(static_cast<size_t>(m * k), kUnset),
                 std::vector<float>(static_cast<size_t>(m * rounding.groups(k)), kUnset)};
  RoundRows(x.data(), ldx, m, k, rounding, result.values.data(), result.scales.data(), isa, pool);
  return result;
}

std::vector<RowRounding> Roundings() {
  std::vector<RowRounding> roundings;
  for (const int64_t group : {0, 1, 16, 24, 32, 128}) {
    for (const RowScale scale :
         {RowScale::kFixed, RowScale::kLargest, RowScale::kPowerOfTwo, RowScale::kE4M3OfGlobal}) {
      for (const RoundTo to : {RoundTo::kE4M3, RoundTo::kE2M1}) {
        roundings.push_back(
            {.to = to, .scale_from = scale, .group = group, .scale = 0.037F, .global = 13.5F});
      }
    }
    for (const int bits : {2, 4, 8}) {
      for (const RowScale scale :
           {RowScale::kFixed, RowScale::kLargest, RowScale::kHalfSpan, RowScale::kRange}) {
        roundings.push_back({.to = RoundTo::kInt,
                             .bits = bits,
                             .scale_from = scale,
                             .group = group,
                             .scale = 0.011F,
                             .zero_point = 1});
      }
    }
  }
  return roundings;
}

void ExpectAllKernelsEqual(const std::vector<float>& x, int64_t m, int64_t k, int64_t ldx) {
  for (const RowRounding& rounding : Roundings()) {
    SCOPED_TRACE(testing::Message()
                 << "to " << static_cast<int>(rounding.to) << " bits " << rounding.bits << " scale "
                 << static_cast<int>(rounding.scale_from) << " group " << rounding.group << " k "
                 << k);
    const Rounded expected = Round(x, m, k, ldx, rounding, Isa::kRef);
    ForEachKernel(RoundKernels(), [&](const RoundKernel& kernel) {
      EXPECT_EQ(kernel.exactness, Exactness::kExact);
      const Rounded actual = Round(x, m, k, ldx, rounding, kernel.isa);
      ExpectSameBits(actual.values, expected.values);
      ExpectSameBits(actual.scales, expected.scales);
    });
  }
}

TEST(RoundRows, ListObeysCaps) {
  ExpectListObeysCaps(RoundKernels());
}

TEST(RoundRows, RandomRows) {
  constexpr uint64_t kSeed = 50;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (const int64_t k : {1, 15, 17, 100, 257}) {
    for (const double scale : {1e-42, 1e-38, 1e-3, 1.0, 1e30})
      ExpectAllKernelsEqual(RandomFloats(rng, 3 * (k + 1), scale), 3, k, k + 1);
  }
}

// Values that lie on codes, between two, on the middles, and one bit beside each.
TEST(RoundRows, TiesAndTheirNeighbours) {
  for (const float step : {0x1p-10F, 0x1p-6F, 0.25F, 0.5F, 16.0F, 0x1p-130F}) {
    std::vector<float> x;
    for (int i = -20; i <= 20; ++i) {
      const float value = static_cast<float>(i) * step;
      x.push_back(value);
      x.push_back(std::nextafter(value, kInfinity));
      x.push_back(std::nextafter(value, -kInfinity));
    }
    const auto k = static_cast<int64_t>(x.size());
    ExpectAllKernelsEqual(x, 1, k, k);
    for (const RoundTo to : {RoundTo::kInt, RoundTo::kE4M3, RoundTo::kE2M1}) {
      for (const float scale : {1.0F, 0.5F, 0x1p-9F, 0x1p-130F}) {
        const RowRounding rounding{.to = to, .scale_from = RowScale::kFixed, .scale = scale};
        const Rounded expected = Round(x, 1, k, k, rounding, Isa::kRef);
        ForEachKernel(RoundKernels(), [&](const RoundKernel& kernel) {
          ExpectSameBits(Round(x, 1, k, k, rounding, kernel.isa).values, expected.values);
        });
      }
    }
  }
}

TEST(RoundRows, GroupsThatHaveNoScale) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const int64_t at : {0, 15, 16, 39, 47}) {
      std::vector<float> x(48, 0.5F);
      x[static_cast<size_t>(at)] = bad;
      ExpectAllKernelsEqual(x, 1, 48, 48);
      ForEachKernel(RoundKernels(), [&](const RoundKernel& kernel) {
        const Rounded result = Round(x, 1, 48, 48, {.group = 16}, kernel.isa);
        for (int64_t l = 0; l < 48; ++l) {
          const bool hit = l / 16 == at / 16;
          EXPECT_EQ(std::isnan(result.values[static_cast<size_t>(l)]), hit) << l;
          EXPECT_EQ(std::isnan(result.scales[static_cast<size_t>(l / 16)]), hit) << l;
        }
      });
    }
  }
  ExpectAllKernelsEqual(std::vector<float>(48, -0.0F), 1, 48, 48);
  ExpectAllKernelsEqual(std::vector<float>(48, 1e-45F), 1, 48, 48);
}

TEST(RoundRows, ByHand) {
  ForEachKernel(RoundKernels(), [&](const RoundKernel& kernel) {
    const auto rounded = [&](RoundTo to, const std::vector<float>& x) {
      const RowRounding rounding{.to = to, .scale_from = RowScale::kFixed, .scale = 1};
      const auto k = static_cast<int64_t>(x.size());
      return Round(x, 1, k, k, rounding, kernel.isa).values;
    };
    EXPECT_EQ(rounded(RoundTo::kE2M1, {0.25F, 0.75F, 2.5F, 3.5F, 5.0F, -9.0F}),
              (std::vector<float>{0, 1, 2, 4, 4, -6}));
    EXPECT_EQ(rounded(RoundTo::kE4M3, {500, -1e9F, 17, 19, 0x1p-10F, 0x1.8p-9F}),
              (std::vector<float>{448, -448, 16, 20, 0, 0x1p-8F}));
    EXPECT_EQ(rounded(RoundTo::kInt, {0.5F, 1.5F, -2.5F, 300, -300}),
              (std::vector<float>{0, 2, -2, 127, -128}));
  });
}

TEST(RoundRows, CodesTimesScalesAreTheValues) {
  Rng rng(52);
  std::vector<float> x = RandomFloats(rng, 3 * 101);
  x[5] = kInfinity;                         // in the first group of the first row
  std::fill_n(x.begin() + 101, 101, 0.0F);  // a row of zeros
  for (size_t j = 202; j < 303; ++j) x[j] = std::nearbyint(x[j] * 50) / 2;  // ties
  x[202] = 127;
  for (const int bits : {2, 4, 8}) {
    for (const int64_t group : {0, 24, 32}) {
      for (const RowScale scale_from :
           {RowScale::kFixed, RowScale::kLargest, RowScale::kHalfSpan}) {
        const RowRounding rounding{.to = RoundTo::kInt,
                                   .bits = bits,
                                   .scale_from = scale_from,
                                   .group = group,
                                   .scale = 0.25F};
        const Rounded expected = Round(x, 3, 101, 101, rounding, Isa::kRef);
        for (const Isa isa : IsasUpTo(DetectIsa())) {
          ThreadPool pool(1);
          std::vector<int8_t> codes(303, int8_t{99});
          std::vector<float> scales(expected.scales.size(), kUnset);
          RoundRowsToInt8(x.data(), 101, 3, 101, rounding, codes.data(), scales.data(), isa, pool);
          ExpectSameBits(scales, expected.scales);
          const size_t groups = scales.size() / 3;
          for (size_t i = 0; i < codes.size(); ++i) {
            const size_t of_row = group == 0 ? 0 : i % 101 / static_cast<size_t>(group);
            const float value = static_cast<float>(codes[i]) * scales[i / 101 * groups + of_row];
            if (std::isnan(expected.values[i])) {
              EXPECT_EQ(codes[i], 0);
              EXPECT_TRUE(std::isnan(value));
            } else {
              EXPECT_EQ(value, expected.values[i]) << i;
            }
          }
        }
      }
    }
  }
}

TEST(RoundRows, ThreadsDoNotChangeResults) {
  Rng rng(51);
  const std::vector<float> x = RandomFloats(rng, 70 * 900);
  ForEachKernel(RoundKernels(), [&](const RoundKernel& kernel) {
    const Rounded one = Round(x, 70, 900, 900, {.group = 128}, kernel.isa);
    for (const int threads : {2, 3})
      ExpectSameBits(Round(x, 70, 900, 900, {.group = 128}, kernel.isa, threads).values,
                     one.values);
  });
}

}  // namespace
}  // namespace octavo
