// Logits, hidden states and greedy tokens of one tiny model of each family, against transformers in
// float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/safetensors.h"
#include "model/architecture.h"
#include "model/forward.h"
#include "runtime/load.h"
#include "runtime/sampler.h"
#include "runtime/session.h"
#include "runtime/states.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;
using testing::TestContext;
using testing::TestData;

constexpr float kBound = 1e-4F;  // of the largest |logit|

class ArchGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    // Checkpoint files only: the golden tensors are not weights.
    const std::filesystem::path source = TestData("arch/" + GetParam());
    for (const auto& entry : std::filesystem::directory_iterator(source)) {
      const std::string file = entry.path().filename().string();
      if (!file.starts_with("golden") && file != "config_v5.json")
        std::filesystem::copy(entry.path(), folder_.path() / file);
    }
    auto golden = SafetensorsFile::Open(source / "golden.safetensors");
    ASSERT_OK(golden);
    golden_ = *std::move(golden);
    auto loaded = LoadModel(folder_.path(), {}, context_.context);
    ASSERT_OK(loaded);
    loaded_ = *std::move(loaded);
  }

  const Model& model() const { return loaded_->model(); }
  TensorView Golden(const std::string& name) const { return golden_.Find(name).value(); }

  // Logits [rows, vocab] of a batch.
  std::vector<float> Logits(Forward* forward, const Batch& batch,
                            std::span<SequenceState* const> states) {
    std::vector<float> hidden(static_cast<size_t>(batch.rows() * model().spec.hidden_size));
    EXPECT_TRUE(forward->Embed(batch, hidden).ok());
    for (int64_t block = 0; block < model().spec.num_layers; ++block)
      forward->Block(block, batch, states, hidden);
    std::vector<float> logits(static_cast<size_t>(batch.rows() * model().spec.vocab_size));
    forward->Head(batch, hidden, logits);
    return logits;
  }

  // Logits [tokens, vocab] of one row of input, fed in the given pieces.
  std::vector<float> LogitsInPieces(std::span<const int32_t> tokens, int64_t piece) {
    Forward forward(model(), context_.context);
    SequenceState state = MakeSequenceState(model(), DType::kF32);
    SequenceState* states[] = {&state};
    std::vector<float> all;
    for (size_t first = 0; first < tokens.size(); first += static_cast<size_t>(piece)) {
      Batch batch;
      batch.lengths = {std::ssize(tokens)};
      for (size_t i = first; i < std::min(tokens.size(), first + static_cast<size_t>(piece)); ++i) {
        batch.Add(tokens[i], 0, static_cast<int64_t>(i), true);
      }
      const std::vector<float> logits = Logits(&forward, batch, states);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  // As a part of the golden's largest logit.
  float LargestError(std::span<const float> logits, std::span<const float> expected) const {
    float largest = 0;
    for (float logit : Golden("logits").data<float>())
      largest = std::max(largest, std::fabs(logit));
    float error = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      error = std::max(error, std::fabs(logits[i] - expected[i]));
    return error / largest;
  }

  TestContext context_;
  TemporaryFolder folder_;
  SafetensorsFile golden_;
  std::unique_ptr<LoadedModel> loaded_;
};

TEST_P(ArchGolden, LogitsInOnePieceInChunksAndTokenByToken) {
  const auto ids = Golden("input_ids").data<int32_t>();
  const auto expected = Golden("logits").data<float>();
  const auto length = static_cast<size_t>(Golden("input_ids").shape[1]);
  for (size_t row = 0; row < ids.size() / length; ++row) {
    for (int64_t piece : {static_cast<int64_t>(length), int64_t{7}, int64_t{1}}) {
      const std::vector<float> logits = LogitsInPieces(ids.subspan(row * length, length), piece);
      EXPECT_LE(LargestError(logits, expected.subspan(row * logits.size(), logits.size())), kBound)
          << "row " << row << ", pieces of " << piece;
    }
  }
}

// Both rows of input in one batch, the second without its end, which follows: each sequence sees
// itself alone.
TEST_P(ArchGolden, LogitsOfSequencesTogether) {
  const auto ids = Golden("input_ids").data<int32_t>();
  const auto expected = Golden("logits").data<float>();
  const int64_t length = Golden("input_ids").shape[1];
  Forward forward(model(), context_.context);
  SequenceState first = MakeSequenceState(model(), DType::kF32);
  SequenceState second = MakeSequenceState(model(), DType::kF32);
  SequenceState* states[] = {&first, &second};
  Batch batch;
  batch.lengths = {length, length};
  const auto add = [&](int64_t sequence, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      batch.Add(ids[static_cast<size_t>(sequence * length + i)], static_cast<int32_t>(sequence), i,
                true);
    }
  };
  const int64_t cut = length - 5;
  add(0, 0, length);
  add(1, 0, cut);
  const std::vector<float> most = Logits(&forward, batch, states);
  EXPECT_LE(LargestError(most, expected.first(most.size())), kBound);
  batch = {
      .tokens = {}, .sequence = {}, .position = {}, .want_logits = {}, .lengths = batch.lengths};
  add(1, cut, length);
  const std::vector<float> rest = Logits(&forward, batch, states);
  EXPECT_LE(LargestError(rest, expected.last(rest.size())), kBound);
}

TEST_P(ArchGolden, GreedyContinuation) {
  const auto ids = Golden("input_ids").data<int32_t>();
  const auto expected = Golden("greedy").data<int32_t>();
  // Goldens of dynamic rope go on where the model should end.
  loaded_->mutable_model().spec.max_positions = 64;
  Session session(model(), context_.context, DType::kF32);
  auto logits = session.Feed(ids.first(static_cast<size_t>(Golden("input_ids").shape[1])));
  for (int32_t token : expected) {
    ASSERT_OK(logits);
    ASSERT_EQ(Argmax(*logits), token);
    logits = session.Feed({&token, 1});
  }
}

// As transformers 5 spells the same model.
TEST_P(ArchGolden, BothSpellingsOfTheConfigSayTheSame) {
  const std::string path = TestData("arch/" + GetParam() + "/config_v5.json").string();
  const auto text = ReadFile(path);
  ASSERT_OK(text);
  const auto config = ParseJson(*text, path);
  ASSERT_OK(config);
  const auto architecture = FindArchitecture(*config);
  ASSERT_OK(architecture);
  const auto spec = (*architecture)->parse_config(*config);
  ASSERT_OK(spec);
  EXPECT_EQ(*spec, model().spec);
}

INSTANTIATE_TEST_SUITE_P(Families, ArchGolden,
                         ::testing::Values("llama", "llama_sharded", "llama_tied", "llama_mha_bias",
                                           "llama_rope_llama3", "llama_rope_linear",
                                           "llama_rope_yarn", "llama_rope_dynamic", "mistral",
                                           "mistral_head_dim", "ministral", "qwen2", "qwen3",
                                           "granite", "smollm3", "ministral3", "ernie4_5", "helium",
                                           "hunyuan_v1_dense", "gemma", "gemma2", "gemma3_text",
                                           "olmo2", "olmo3", "exaone4", "glm", "glm4", "phi3",
                                           "phi3_longrope"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace octavo
