#include "compress/modifiers/smooth_scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "io/safetensors.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

Result<std::vector<float>> Scales(std::vector<float> minimum, std::vector<float> maximum,
                                  std::vector<float> weight, double strength,
                                  SmoothAlgorithm algorithm = SmoothAlgorithm::kSmoothQuant) {
  const std::span<const float> weights[] = {weight};
  return SmoothScales(minimum, maximum, weights, strength, algorithm);
}

// The library's scales of layer 0 from the same ranges. It rounds range, powers and quotient to
// bfloat16 each (2^-9 relative), which is all that may differ.
TEST(SmoothScales, MeetTheLibraryWithinBf16) {
  const auto file =
      SafetensorsFile::Open(std::filesystem::path(OCTAVO_TEST_DATA) / "schemes/smooth.safetensors")
          .value();
  const auto minimum = file.Find("minimum")->data<float>();
  const auto maximum = file.Find("maximum")->data<float>();
  const std::span<const float> weights[] = {file.Find("largest_weight")->data<float>()};
  for (const auto& [name, strength] : {std::pair{"scale_8", 0.8}, std::pair{"scale_5", 0.5}}) {
    const auto golden = file.Find(name)->data<float>();
    const auto scales =
        SmoothScales(minimum, maximum, weights, strength, SmoothAlgorithm::kSmoothQuant).value();
    ASSERT_EQ(scales.size(), golden.size());
    for (size_t j = 0; j < scales.size(); ++j) {
      EXPECT_NEAR(scales[j] / golden[j], 1.0F, 0.0125F) << name << " channel " << j;
    }
  }
}

TEST(SmoothScales, FormulaAndItsEdges) {
  // range 16, w = 2 * 2: 16^0.5 / 4^0.5.
  EXPECT_FLOAT_EQ((*Scales({-4}, {12}, {2}, 0.5))[0], 2.0F);
  // The largest over rows, and over both signs.
  EXPECT_FLOAT_EQ((*Scales({-4}, {12}, {1, -2}, 0.5))[0], 2.0F);
  // A channel that never moved is left alone, whatever its constant value.
  EXPECT_EQ((*Scales({3}, {3}, {2}, 0.5))[0], 1.0F);
  // No weight reads the channel.
  EXPECT_FLOAT_EQ((*Scales({0}, {6}, {0}, 0.8))[0], 6.0F);
  EXPECT_FLOAT_EQ((*Scales({0}, {1e-20F}, {1}, 1.0))[0], 1e-5F);
  EXPECT_FLOAT_EQ((*Scales({0}, {6}, {1}, 0.5, SmoothAlgorithm::kLogEqualization))[0], 2.0F);
}

TEST(SmoothScales, RefusesWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(Scales({-inf}, {1}, {1}, 0.5).ok());
  EXPECT_FALSE(Scales({nan}, {1}, {1}, 0.5).ok());
  EXPECT_FALSE(Scales({0}, {1}, {nan}, 0.5).ok());
  EXPECT_FALSE(Scales({0}, {1}, {nan, 1}, 0.5).ok());
  EXPECT_FALSE(Scales({0}, {1}, {inf}, 0.5).ok());
  EXPECT_FALSE(Scales({}, {}, {}, 0.5).ok());
  // What an observer that saw no token holds.
  EXPECT_FALSE(Scales({inf}, {-inf}, {1}, 0.5).ok());
}

}  // namespace
}  // namespace octavo
