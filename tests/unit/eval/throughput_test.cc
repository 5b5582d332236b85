// What a model's speed is held against: operations and bytes counted by hand.
#include "eval/throughput.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "runtime/load.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TestContext;

std::filesystem::path Stories() {
  return std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
}

// 5 blocks: q, o 64 x 64; k, v 32 x 64; gate, up, down 172 x 64. Head 512 x 64, all F32.
TEST(Throughput, OperationsAndBytesOfAFloatModel) {
  const TestContext context;
  const auto loaded = LoadModel(Stories(), {}, context.context);
  ASSERT_OK(loaded);
  const Model& model = (*loaded)->model();
  const int64_t block = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 172 * 64;
  EXPECT_EQ(BlockMultiplyAdds(model), 5 * block);
  const int64_t element = DTypeBytes(model.spec.dtype);
  const int64_t weights = (5 * block + 512 * 64) * element;
  EXPECT_EQ(DecodeBytes(model, 3, 100), weights + 3 * 100 * 5 * 2 * 32 * 2);
  EXPECT_FALSE(RunsInInt8(model));
  EXPECT_EQ(ParameterCount(model), 260032);  // as torch counts them
}

TEST(Throughput, QuantizedWeightsCountABytePerElement) {
  const TestContext context;
  const auto loaded = LoadModel(testing::TestData("checkpoints/odd-w8a8"), {}, context.context);
  ASSERT_OK(loaded);
  const Model& model = (*loaded)->model();
  const int64_t head = model.spec.vocab_size * model.spec.hidden_size * 2;
  EXPECT_EQ(DecodeBytes(model, 1, 0), BlockMultiplyAdds(model) + head);
  EXPECT_TRUE(RunsInInt8(model));
}

// Keys and values are codes of a byte, in bfloat16 they were two.
TEST(Throughput, AQuantizedCacheCountsAByteAnElement) {
  const TestContext context;
  const auto loaded =
      LoadModel(testing::TestData("checkpoints/llama-kv-int8"), {}, context.context);
  ASSERT_OK(loaded);
  const Model& model = (*loaded)->model();
  EXPECT_EQ(DecodeBytes(model, 2, 10) - DecodeBytes(model, 2, 0),
            2 * 10 * model.spec.num_layers * 2 * model.spec.kv_size());
}

TEST(Throughput, MeasuresAndRefusesMoreThanThePositions) {
  const TestContext context;
  const auto loaded = LoadModel(Stories(), {}, context.context);
  ASSERT_OK(loaded);
  const std::vector<TokenId> prompt(20, 7);
  const auto prefill = MeasurePrefill((*loaded)->model(), prompt, 0, context.context);
  ASSERT_OK(prefill);
  EXPECT_GT(*prefill, 0);
  const DecodeLoad load{.sequences = 3, .tokens = 5};
  const auto decode = MeasureDecode((*loaded)->model(), prompt, load, 0, context.context);
  ASSERT_OK(decode);
  EXPECT_GT(*decode, 0);
  const auto refused =
      MeasureDecode((*loaded)->model(), prompt, {.tokens = 500}, 0, context.context);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("512 positions"), std::string::npos);
}

}  // namespace
}  // namespace octavo
