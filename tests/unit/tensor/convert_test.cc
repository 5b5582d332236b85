#include "tensor/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace octavo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float FromBits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// The value of an f16 pattern by its definition, in double.
double F16ByDefinition(uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 0x1FU);
  const int fraction = static_cast<int>(bits & 0x3FFU);
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(F16, AllPatternsReadAsDefinedAndRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = FloatFromF16(pattern);
    const double expected = F16ByDefinition(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(FloatFromF16(F16FromFloat(value)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
      ASSERT_EQ(F16FromFloat(value), pattern) << bits;  // also the sign of zero
    }
  }
}

TEST(Bf16, AllPatternsRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = FloatFromBf16(pattern);
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(value)))) << bits;
    } else {
      ASSERT_EQ(Bf16FromFloat(value), pattern) << bits;
    }
  }
}

// Between each two neighbours: the middle goes to the even one, and what is off it to the nearer.
TEST(F16, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float low = FloatFromF16(static_cast<uint16_t>(bits));
    // The neighbour of the largest is where infinity begins, 65536.
    const float high = bits == 0x7BFF ? 65536.0F : FloatFromF16(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact
    const uint32_t even = bits + (bits & 1U);
    ASSERT_EQ(F16FromFloat(middle), even) << bits;
    ASSERT_EQ(F16FromFloat(-middle), even | 0x8000U) << bits;
    ASSERT_EQ(F16FromFloat(std::nextafter(middle, 0.0F)), bits) << bits;
    ASSERT_EQ(F16FromFloat(std::nextafter(middle, kInfinity)), bits + 1) << bits;
  }
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000U;
    const uint32_t even = bits + (bits & 1U);
    ASSERT_EQ(Bf16FromFloat(FromBits(middle)), even) << bits;
    ASSERT_EQ(Bf16FromFloat(FromBits(middle | 0x80000000U)), even | 0x8000U) << bits;
    ASSERT_EQ(Bf16FromFloat(FromBits(middle - 1)), bits) << bits;
    ASSERT_EQ(Bf16FromFloat(FromBits(middle + 1)), bits + 1) << bits;
  }
}

TEST(F16, ExtremesAndNans) {
  EXPECT_EQ(F16FromFloat(65504.0F), 0x7BFF);
  EXPECT_EQ(F16FromFloat(65519.996F), 0x7BFF);
  EXPECT_EQ(F16FromFloat(65520.0F), 0x7C00);
  EXPECT_EQ(F16FromFloat(3e38F), 0x7C00);
  EXPECT_EQ(F16FromFloat(-kInfinity), 0xFC00);
  EXPECT_EQ(F16FromFloat(1e-45F), 0);
  EXPECT_EQ(F16FromFloat(-1e-45F), 0x8000);
  for (uint32_t nan : {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U}) {
    EXPECT_TRUE(std::isnan(FloatFromF16(F16FromFloat(FromBits(nan))))) << nan;
    EXPECT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(FromBits(nan))))) << nan;
  }
}

TEST(ToFloat, ReadsEachFloatDTypeFromUnalignedBytes) {
  const auto read = [](DType dtype, const void* element, size_t size) {
    std::vector<std::byte> bytes(size + 1);
    std::memcpy(bytes.data() + 1, element, size);
    float out = 0;
    const Status status =
        ToFloat({.dtype = dtype, .shape = {1}, .bytes = bytes.data() + 1}, {&out, 1});
    EXPECT_TRUE(status.ok()) << status.ToString();
    return out;
  };
  const double d = 1.0 + 0x1p-25;  // rounds to 1
  const float f = 0.1F;
  const uint16_t bf16 = 0x3FC0;
  const uint16_t f16 = 0x3E00;
  EXPECT_EQ(read(DType::kF64, &d, 8), 1.0F);
  EXPECT_EQ(read(DType::kF32, &f, 4), 0.1F);
  EXPECT_EQ(read(DType::kBF16, &bf16, 2), 1.5F);
  EXPECT_EQ(read(DType::kF16, &f16, 2), 1.5F);
}

TEST(ToFloat, RefusesOtherDTypes) {
  for (DType dtype : {DType::kI8, DType::kI32, DType::kF8E4M3, DType::kBool, DType::kU64}) {
    const Tensor tensor = Tensor::Zeros(dtype, {2});
    const Status status = ToFloatTensor(tensor).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find(DTypeName(dtype)), std::string::npos);
  }
}

TEST(FromFloat, RoundsAndReadsBack) {
  const std::vector<float> values = {1.0F, 0.1F, -3.3F, 65520.0F};
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const Result<Tensor> tensor = FromFloat(values, dtype, {2, 2});
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(tensor->dtype(), dtype);
    EXPECT_EQ(tensor->shape(), (Shape{2, 2}));
    const Result<Tensor> back = ToFloatTensor(*tensor);
    ASSERT_TRUE(back.ok());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(back->data<float>()[i], RoundToDType(values[i], dtype));
    }
  }
  EXPECT_EQ(RoundToDType(0.1F, DType::kBF16), 0.10009765625F);
  EXPECT_EQ(RoundToDType(0.1F, DType::kF16), 0.0999755859375F);
  EXPECT_EQ(RoundToDType(65520.0F, DType::kF16), kInfinity);
  EXPECT_EQ(FromFloat(values, DType::kI8, {4}).status().code(), StatusCode::kUnsupported);
  EXPECT_TRUE(FromFloat({}, DType::kF32, {0, 3}).ok());
}

}  // namespace
}  // namespace octavo
