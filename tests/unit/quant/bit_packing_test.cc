#include "quant/bit_packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "io/safetensors.h"

namespace octavo {
namespace {

bool SameBytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.bytes, b.bytes, static_cast<size_t>(a.num_bytes())) == 0;
}

TEST(BitPacking, IsTheLibrarys) {
  const auto file = SafetensorsFile::Open(std::filesystem::path(OCTAVO_TEST_DATA) / "schemes" /
                                          "arith_float.safetensors")
                        .value();
  for (int bits = 1; bits <= 8; ++bits) {
    SCOPED_TRACE(bits);
    const std::string name = "pack.int" + std::to_string(bits) + ".";
    const TensorView values = file.Find(name + "values").value();
    const TensorView rows = file.Find(name + "packed").value();
    const TensorView columns = file.Find(name + "packed_dim0").value();
    EXPECT_TRUE(SameBytes(PackRows(values, bits), rows));
    EXPECT_TRUE(SameBytes(PackColumns(values, bits), columns));
    EXPECT_TRUE(SameBytes(UnpackRows(rows, values.shape[1], bits).value(), values));
    EXPECT_TRUE(SameBytes(UnpackColumns(columns, values.shape[0], bits).value(), values));
  }
}

// Before streams crossed words, each word held floor(32 / bits) codes: 3 bits, ten in a word.
TEST(BitPacking, OldFilesArePaddedWordByWord) {
  Tensor words(DType::kI32, {1, 2});
  const auto data = words.mutable_data<int32_t>();
  data[0] = 0;
  for (int i = 0; i < 10; ++i) data[0] |= (i % 8) << (3 * i);
  data[1] = 5 | 6 << 3;
  // 12 codes of 3 bits fill 36 bits: two words either way; of 11 in 33 bits the same; so 21.
  Tensor three(DType::kI32, {1, 3});
  three.mutable_data<int32_t>()[0] = data[0];
  three.mutable_data<int32_t>()[1] = data[0];
  three.mutable_data<int32_t>()[2] = 7;
  const Tensor codes = UnpackRows(three, 21, 3).value();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(codes.data<int8_t>()[static_cast<size_t>(i)], i % 10 % 8 - 4) << i;
  EXPECT_EQ(codes.data<int8_t>()[20], 3);
}

TEST(BitPacking, OtherWidthsAreRefused) {
  const Tensor words = Tensor::Zeros(DType::kI32, {2, 3});
  EXPECT_FALSE(UnpackRows(words, 40, 4).ok());
  EXPECT_FALSE(UnpackRows(words, 8, 4).ok());
  EXPECT_FALSE(UnpackColumns(words, 40, 4).ok());
  EXPECT_FALSE(UnpackRows(Tensor::Zeros(DType::kI8, {2, 3}), 3, 4).ok());
  EXPECT_FALSE(UnpackRows(Tensor::Zeros(DType::kI32, {3}), 3, 4).ok());
}

}  // namespace
}  // namespace octavo
