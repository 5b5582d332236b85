#include "convert/gguf_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

struct Golden {
  const GgmlType* type = nullptr;
  std::string blocks;
  std::vector<float> values;
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
  EXPECT_EQ(head[3], 4 * head[1]);
  std::memcpy(golden.values.data(), file.data() + sizeof(head) + head[2], head[3]);
  return golden;
}

class GgufBlocksTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufBlocksTest, MeetsTheGgufPackage) {
  const Golden golden = ReadGolden(GetParam());
  const Result<const GgufBlockDecoder*> decoder = FindGgufBlockDecoder(*golden.type);
  ASSERT_OK(decoder);
  std::vector<float> decoded(golden.values.size());
  DecodeGgufBlocks(*golden.type, **decoder, std::as_bytes(std::span(golden.blocks)), decoded);
  for (size_t i = 0; i < decoded.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), std::bit_cast<uint32_t>(golden.values[i]))
        << "element " << i << ": " << decoded[i] << ", expected " << golden.values[i];
  }
}

// One file for each line of the list.
std::vector<std::string> ListedTypes() {
  std::vector<std::string> names = {
#define OCTAVO_GGUF_BLOCK(name, function) name,
#include "convert/gguf_blocks.inc"
#undef OCTAVO_GGUF_BLOCK
  };
  for (std::string& name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBlocksTest, ::testing::ValuesIn(ListedTypes()),
                         [](const auto& test) { return test.param; });

TEST(GgufBlocksListTest, OtherTypesAreRefusedByName) {
  const Status status = FindGgufBlockDecoder(*FindGgmlType(9)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("Q8_1"), std::string::npos) << status.message();
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
