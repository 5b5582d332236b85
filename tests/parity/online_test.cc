// Checkpoints that ask for work while the model runs: a quantized cache, rounded queries,
// rotations.
#include "runtime/online.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "model/forward.h"
#include "runtime/states.h"
#include "support/golden_checkpoint.h"

namespace octavo {
namespace {

using testing::GoldenCheckpoint;

struct Case {
  std::string name;
  // What float64 arithmetic or an embedding off by 1e-6 changes in the logits, from the index of
  // the goldens: the largest element; or, where int8 activations have ties, the root mean square.
  double sensitivity;
  bool has_ties = false;
  DType cache = DType::kF32;
  std::string down_input = {};  // how PreparedLinear::Describe ends for down_proj of block 0
};

// In the names of tests; gtest would show the bytes, addresses among them.
void PrintTo(const Case& item, std::ostream* out) {
  *out << item.name;
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class OnlineGolden : public GoldenCheckpoint, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { Open(GetParam().name); }

  static float Largest(std::span<const float> values) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::fabs(value));
    return largest;
  }

  // Logits of the first prompt, fed in pieces of `rows` tokens.
  std::vector<float> LogitsInPieces(const Model& model, int64_t rows) {
    const auto ids = Golden("input_ids").data<int32_t>();
    const int64_t length = Golden("input_ids").shape[1];
    SequenceState state = MakeSequenceState(model, DType::kF32);
    SequenceState* const states[] = {&state};
    Forward forward(model, context_.context);
    std::vector<float> all;
    for (int64_t first = 0; first < length; first += rows) {
      Batch batch;
      for (int64_t i = first; i < std::min(length, first + rows); ++i)
        batch.Add(ids[static_cast<size_t>(i)], 0, i, true);
      std::vector<float> hidden(static_cast<size_t>(batch.rows() * model.spec.hidden_size));
      EXPECT_TRUE(forward.Embed(batch, hidden).ok());
      for (int64_t block = 0; block < model.spec.num_layers; ++block)
        forward.Block(block, batch, states, hidden);
      std::vector<float> logits(static_cast<size_t>(batch.rows() * model.spec.vocab_size));
      forward.Head(batch, hidden, logits);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }
};

TEST_P(OnlineGolden, Logits) {
  const auto loaded = Load(ActivationRule::kLibrary);
  const std::vector<float> logits = Logits(loaded->model());
  const auto expected = Golden("logits").data<float>();
  double squares = 0;
  double largest_difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto difference = static_cast<double>(logits[i] - expected[i]);
    squares += difference * difference;
    largest_difference = std::max(largest_difference, std::fabs(difference));
  }
  if (GetParam().has_ties) {
    EXPECT_LE(std::sqrt(squares / static_cast<double>(expected.size())),
              2 * GetParam().sensitivity);
  } else {
    EXPECT_LE(largest_difference, std::max(1e-4, 2 * GetParam().sensitivity));
  }
}

// There, nothing but weights is quantized; transforms are applied.
TEST_P(OnlineGolden, WeightOnlyLogits) {
  ExpectWeightOnlyLogits();
}

TEST_P(OnlineGolden, WhatRunsIsWhatIsDeclared) {
  const auto loaded = Load(ActivationRule::kEngine);
  const Model& model = loaded->model();
  EXPECT_TRUE(loaded->UnusedTensors().empty()) << loaded->UnusedTensors().front();
  SequenceState state = MakeSequenceState(model, DType::kF32);
  for (const auto& layer : state.layers)
    EXPECT_EQ(static_cast<KvState*>(layer.get())->view().dtype, GetParam().cache);
  const std::string text = model.blocks[0].down.parts[0]->Describe();
  EXPECT_TRUE(text.ends_with(GetParam().down_input)) << text;
}

// The same codes are read whenever they were written.
TEST_P(OnlineGolden, PiecesAndSingleTokensAgree) {
  const auto loaded = Load(ActivationRule::kEngine);
  const std::vector<float> whole = LogitsInPieces(loaded->model(), 24);
  for (const int64_t rows : {7, 1}) {
    const std::vector<float> pieces = LogitsInPieces(loaded->model(), rows);
    ASSERT_EQ(pieces.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(pieces[i], whole[i], 1e-3F * Largest(whole)) << rows << " rows, " << i;
  }
}

TEST_P(OnlineGolden, TheCacheIsAsSmallAsItsCodec) {
  if (GetParam().cache == DType::kF32) return;
  const auto loaded = Load(ActivationRule::kEngine);
  const ModelSpec& spec = loaded->model().spec;
  SequenceState state = MakeSequenceState(loaded->model(), DType::kBF16);
  const std::vector<float> row(static_cast<size_t>(spec.kv_size()), 1.0F);
  for (const auto& layer : state.layers) {
    static_cast<KvState*>(layer.get())->Append(row.data(), row.data(), 1, spec.kv_size());
    EXPECT_EQ(layer->num_bytes(), 2 * spec.kv_size()) << "half of bfloat16";
  }
}

INSTANTIATE_TEST_SUITE_P(
    KvCache, OnlineGolden,
    ::testing::Values(Case{"llama-fp8-dynamic-kv", 3.96e-5, false, DType::kF8E4M3},
                      Case{"llama-fp8-dynamic-kv-head", 1.53e-4, false, DType::kF8E4M3},
                      Case{"llama-kv-int8", 0.0743, true, DType::kI8},
                      Case{"llama-w4a16-kv-int8", 1.2e-5, false, DType::kI8},
                      Case{"llama-attention-fp8", 3.36e-4, false, DType::kF8E4M3}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Transforms, OnlineGolden,
    ::testing::Values(Case{"llama-spin-online", 1.58e-5, false, DType::kF32,
                           ", input times Hadamard blocks of 128"},
                      Case{"llama-spin-online-random", 1.75e-5, false, DType::kF32,
                           ", input times Hadamard blocks of 384"},
                      Case{"llama-spin-online-kv", 1.61e-5, false, DType::kF8E4M3,
                           ", input times Hadamard blocks of 128"},
                      Case{"llama-quip-w4a16", 2.07e-5, false, DType::kF32,
                           ", input times Hadamard blocks of 384"}),
    CaseName);

}  // namespace
}  // namespace octavo
