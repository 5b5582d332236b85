#include "convert/gguf_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/file.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

struct Golden {
  const GgmlType* type = nullptr;
  std::string blocks;
  std::vector<uint16_t> values;  // BF16
};

// The layout is written in tests/data/gguf/SOURCE.md.
Golden ReadGolden(const std::string& name) {
  const std::string file = ReadFile(testing::TestData("gguf/" + name + ".bin")).value();
  uint32_t head[4];
  std::memcpy(head, file.data(), sizeof(head));
  Golden golden;
  golden.type = FindGgmlType(head[0]);
  golden.blocks = file.substr(sizeof(head), head[2]);
  golden.values.resize(head[1]);
  EXPECT_EQ(file.size(), sizeof(head) + head[2] + head[3]);
  EXPECT_EQ(head[3], 2 * head[1]);
  std::memcpy(golden.values.data(), file.data() + sizeof(head) + head[2], head[3]);
  return golden;
}

class GgufBlocksTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufBlocksTest, MeetsTheGgufPackage) {
  const Golden golden = ReadGolden(GetParam());
  const Result<const GgufBlockDecoder*> decoder = FindGgufBlockDecoder(*golden.type);
  ASSERT_OK(decoder);
  std::vector<float> decoded(golden.values.size());
  DecodeGgufBlocks(*golden.type, **decoder, std::as_bytes(std::span(golden.blocks)), decoded);
  for (size_t i = 0; i < decoded.size(); ++i) {
    ASSERT_EQ(Bf16FromFloat(decoded[i]), golden.values[i]) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBlocksTest,
                         ::testing::Values("f32", "f16", "bf16", "q4_0", "q4_1", "q8_0"),
                         [](const auto& test) { return std::string(test.param); });

TEST(GgufBlocksListTest, OtherTypesAreRefusedByName) {
  const Status status = FindGgufBlockDecoder(*FindGgmlType(12)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("Q4_K"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("Q8_0"), std::string::npos) << status.message();
}

// Every line of the list names a type of the table in io/gguf.cc.
TEST(GgufBlocksListTest, EveryLineNamesAType) {
  const auto known = [](std::string_view name) {
    for (uint32_t id = 0; id < 64; ++id) {
      if (FindGgmlType(id) != nullptr && FindGgmlType(id)->name == name) return true;
    }
    return false;
  };
#define OCTAVO_GGUF_BLOCK(name, function) EXPECT_TRUE(known(name)) << name;
#include "convert/gguf_blocks.inc"
#undef OCTAVO_GGUF_BLOCK
}

}  // namespace
}  // namespace octavo
