#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr int kNumDTypes = static_cast<int>(DType::kBool) + 1;

TEST(DType, NamesAreDistinctAndParseBack) {
  std::set<std::string> names;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    names.emplace(DTypeName(dtype));
    ASSERT_TRUE(ParseDType(DTypeName(dtype)).ok()) << DTypeName(dtype);
    EXPECT_EQ(*ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumDTypes));
}

TEST(DType, BytesAreThoseInTheName) {
  const std::pair<const char*, int64_t> kBytes[] = {
      {"F64", 8},     {"F32", 4},     {"F16", 2},  {"BF16", 2},   {"I64", 8}, {"I32", 4},
      {"I16", 2},     {"I8", 1},      {"U64", 8},  {"U32", 4},    {"U16", 2}, {"U8", 1},
      {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}, {"F8_E8M0", 1}};
  for (const auto& [name, bytes] : kBytes) {
    ASSERT_TRUE(ParseDType(name).ok()) << name;
    EXPECT_EQ(DTypeBytes(*ParseDType(name)), bytes) << name;
  }
}

TEST(DType, UnknownTagsAreNamed) {
  for (const char* tag : {"", "f32", "F31", "F32 ", "C64"}) {
    const Status status = ParseDType(tag).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("\"" + std::string(tag) + "\""), std::string::npos);
  }
}

TEST(Shape, CountsAndPrints) {
  EXPECT_EQ(*CheckedElements({}), 1);
  EXPECT_EQ(*CheckedElements({2, 3, 4}), 24);
  EXPECT_EQ(*CheckedElements({5, 0}), 0);
  EXPECT_EQ(ShapeString({}), "[]");
  EXPECT_EQ(ShapeString({2, 3}), "[2, 3]");
}

TEST(Shape, RefusesNegativeAndHugeSizes) {
  EXPECT_EQ(CheckedElements({2, -1}).status().code(), StatusCode::kCorruptFile);
  EXPECT_FALSE(CheckedElements({INT64_MAX, INT64_MAX}).ok());
  EXPECT_FALSE(CheckedElements({int64_t{1} << 32, int64_t{1} << 32}).ok());
  // As float64, the bytes of these would overflow to 0.
  EXPECT_FALSE(CheckedElements({int64_t{1} << 61}).ok());
  EXPECT_EQ(*CheckedElements({(int64_t{1} << 60) - 1}), (int64_t{1} << 60) - 1);
}

TEST(Tensor, IsAlignedAndOwnsItsBytes) {
  Tensor tensor = Tensor::Zeros(DType::kF32, {3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes()) % 64, 0U);
  EXPECT_EQ(tensor.elements(), 15);
  EXPECT_EQ(tensor.num_bytes(), 60);
  for (float value : tensor.data<float>()) EXPECT_EQ(value, 0.0F);
  tensor.mutable_data<float>()[14] = 2.5F;
  const Tensor copy = tensor.Clone();
  tensor.mutable_data<float>()[14] = 7.0F;
  EXPECT_EQ(copy.data<float>()[14], 2.5F);
  const Tensor moved = std::move(tensor);
  EXPECT_EQ(moved.data<float>()[14], 7.0F);
}

TEST(Tensor, EmptyShapesAndScalars) {
  EXPECT_TRUE(Tensor().empty());
  const Tensor none = Tensor::Zeros(DType::kI64, {0, 7});
  EXPECT_EQ(none.num_bytes(), 0);
  EXPECT_NE(none.view().bytes, nullptr);
  EXPECT_TRUE(none.data<int64_t>().empty());
  EXPECT_EQ(Tensor::CopyOf(none).shape(), (Shape{0, 7}));
  EXPECT_EQ(Tensor::Zeros(DType::kU8, {}).elements(), 1);
}

TEST(Tensor, LargePagesAreSharedByNeighboursAndOutliveThem) {
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < 40; ++i) {
    tensors.push_back(Tensor::InLargePages(DType::kI32, {i % 7 == 3 ? 3'000'000 : 40'000 + i}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensors.back().bytes()) % 64, 0U);
    const std::span<int32_t> values = tensors.back().mutable_data<int32_t>();
    std::fill(values.begin(), values.end(), static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < tensors.size(); i += 2) tensors[i] = Tensor();
  for (size_t i = 1; i < tensors.size(); i += 2) {
    const std::span<const int32_t> values = tensors[i].data<int32_t>();
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [&](int32_t value) {
      return value == static_cast<int32_t>(i);
    })) << i;
  }
  EXPECT_FALSE(Tensor::InLargePages(DType::kF32, {0}).empty());
}

TEST(Tensor, SixteenBitsStandForBothHalves) {
  EXPECT_EQ(Tensor::Zeros(DType::kBF16, {2}).data<uint16_t>().size(), 2U);
  EXPECT_EQ(Tensor::Zeros(DType::kF16, {2}).data<uint16_t>().size(), 2U);
}

TEST(TensorDeathTest, RefusesTheWrongTypeAndUnalignedBytes) {
  const Tensor tensor = Tensor::Zeros(DType::kF32, {4});
  EXPECT_DEATH(static_cast<void>(tensor.data<double>()), "F32");
  EXPECT_DEATH(static_cast<void>(tensor.data<uint16_t>()), "F32");
  const TensorView odd{.dtype = DType::kF32, .shape = {2}, .bytes = tensor.view().bytes + 1};
  EXPECT_DEATH(static_cast<void>(odd.data<float>()), "alignof");
}

}  // namespace
}  // namespace octavo
