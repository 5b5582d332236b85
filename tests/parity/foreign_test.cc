// Checkpoints of other tools: what is read, what the model computes, and that their re-saved form
// computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "convert/resave.h"
#include "io/checkpoint_writer.h"
#include "support/golden_checkpoint.h"

namespace octavo {
namespace {

using testing::GoldenCheckpoint;

struct Case {
  std::string name;
  std::string description;        // PreparedLinear::Describe of q/k/v
  std::string saved_description;  // of the re-saved layer
  std::string saved_format;
  double sensitivity;  // of the logits, from the index of the goldens
  bool keep_group_order = false;
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

class ForeignGolden : public GoldenCheckpoint, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { Open(GetParam().name); }

  ResaveOptions Options() const {
    ResaveOptions options;
    options.keep_group_order = GetParam().keep_group_order;
    return options;
  }
};

void ExpectDescribed(const Model& model, const std::string& description) {
  for (const Block& block : model.blocks) {
    for (const auto& part : block.qkv.parts)
      EXPECT_TRUE(part->Describe().starts_with(description)) << part->Describe();
  }
  EXPECT_TRUE(model.head.parts[0]->Describe().starts_with("dense"));
}

TEST_P(ForeignGolden, UnpackedWeights) {
  ExpectUnpackedWeights();
}

TEST_P(ForeignGolden, WeightOnlyLogits) {
  ExpectWeightOnlyLogits();
}

TEST_P(ForeignGolden, LogitsAreAsNearAsRoundingAllows) {
  const auto loaded = Load(ActivationRule::kLibrary);
  ExpectDescribed(loaded->model(), GetParam().description);
  const std::vector<float> logits = Logits(loaded->model());
  const auto expected = Golden("logits").data<float>();
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::fabs(static_cast<double>(logits[i] - expected[i])));
  }
  EXPECT_LE(difference, std::max(1e-5 * largest, 3 * GetParam().sensitivity));
}

TEST_P(ForeignGolden, ResavedComputesTheSame) {
  testing::TemporaryFolder folder;
  const auto out = folder.path() / "out";
  ASSERT_OK(ResaveCheckpoint(copy_.path(), out, Options(), context_.context));
  const auto loaded = LoadModel(out, {}, context_.context);
  ASSERT_OK(loaded);
  EXPECT_EQ((*loaded)->quantization()->quant_method, "compressed-tensors");
  EXPECT_EQ((*loaded)->quantization()->format, GetParam().saved_format);
  EXPECT_EQ((*loaded)->quantization()->ignore, std::vector<std::string>{"lm_head"});
  ExpectDescribed((*loaded)->model(), GetParam().saved_description);
  EXPECT_EQ(Logits((*loaded)->model()), Logits(Load(ActivationRule::kEngine)->model()));
}

constexpr char kFloatInput[] = "GPTQ: int4 weights, float activations";
constexpr char kSaved4[] = "WNA16: int4 weights, float activations";
constexpr char kStatic[] = "W8A8 FP8: float8 weights, float8 activations, static tensor";
constexpr char kBlock[] = "W8A8 FP8: float8 weights, float8 activations, dynamic group of 128";

INSTANTIATE_TEST_SUITE_P(
    Foreign, ForeignGolden,
    ::testing::Values(Case{"foreign-gptq", kFloatInput, kSaved4, "pack-quantized", 2e-5},
                      Case{"foreign-gptq-sym", kFloatInput, kSaved4, "pack-quantized", 2e-5},
                      Case{"foreign-gptq-v2", kFloatInput, kSaved4, "pack-quantized", 2e-5},
                      Case{"foreign-gptq-desc-act", kFloatInput, kSaved4, "pack-quantized", 2e-5,
                           true},
                      Case{"foreign-gptq-8bit", "GPTQ: int8 weights, float activations",
                           "WNA16: int8 weights, float activations", "pack-quantized", 2e-5},
                      Case{"foreign-awq", "AWQ: int4 weights, float activations", kSaved4,
                           "pack-quantized", 2e-5},
                      Case{"foreign-fp8-block", kBlock, kBlock, "float-quantized", 0.00472},
                      Case{"foreign-fp8-static", kStatic, kStatic, "float-quantized", 6.2e-6},
                      Case{"foreign-fp8-static-inv", kStatic, kStatic, "float-quantized", 6.2e-6}),
    CaseName);

class Resave : public GoldenCheckpoint {
 protected:
  Status ResaveOf(const std::string& name) {
    Open(name);
    return ResaveCheckpoint(copy_.path(), folder_of_output_.path() / "out", {}, context_.context);
  }
  testing::TemporaryFolder folder_of_output_;
};

TEST_F(Resave, ScatteredGroupsAreWrittenOnlyWhenAskedFor) {
  const Status status = ResaveOf("foreign-gptq-desc-act");
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("--keep-group-order"), std::string::npos) << status.message();
  EXPECT_TRUE(std::filesystem::is_empty(folder_of_output_.path()));
}

TEST_F(Resave, WhatIsInTheFormatAlreadyIsRefused) {
  const Status status = ResaveOf("llama-w4a16");
  EXPECT_NE(status.message().find("compressed-tensors format already"), std::string::npos)
      << status.message();
}

TEST_F(Resave, AnExistingOutputIsKeptWithoutForce) {
  std::filesystem::create_directory(folder_of_output_.path() / "out");
  EXPECT_EQ(ResaveOf("foreign-awq").code(), StatusCode::kAlreadyExists);
  const auto out = folder_of_output_.path() / "out";
  EXPECT_TRUE(std::filesystem::is_empty(out));
  ASSERT_OK(ResaveCheckpoint(copy_.path(), out, {.force = true}, context_.context));
  EXPECT_TRUE(std::filesystem::exists(out / "config.json"));
}

class QuantizedEmbedding : public GoldenCheckpoint {
 protected:
  void SetUp() override { Open("llama-w8a16-embed"); }

  void SetConfig(const char* key, Value value) {
    const auto path = copy_.path() / "config.json";
    Value config = ParseJson(ReadFile(path).value(), "config.json").value();
    config.Set(key, std::move(value));
    ASSERT_OK(WriteFileAtomically(path, WriteJson(config, {})));
  }
};

TEST_F(QuantizedEmbedding, LooksUpDequantizedRows) {
  const auto loaded = Load(ActivationRule::kEngine);
  ASSERT_NE(loaded->model().embedding_table, nullptr);
  const std::vector<float> logits = Logits(loaded->model());
  const auto expected = Golden("logits_weight_only").data<float>();
  float largest = 0;
  for (float logit : expected) largest = std::max(largest, std::fabs(logit));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(logits[i], expected[i], 1e-5F * largest) << i;
}

// The head's tensors are the embedding's, once written twice, once left out.
TEST_F(QuantizedEmbedding, ATiedHeadReadsItsTensors) {
  const std::string head = "lm_head.";
  const std::string embedding = "model.embed_tokens.";
  const auto source = Checkpoint::Open(copy_.path()).value();
  std::vector<std::vector<float>> logits;
  for (const bool is_tied : {false, true}) {
    std::vector<std::pair<std::string, TensorView>> tensors;
    for (const std::string& name : source.Names()) {
      if (name.starts_with(head)) continue;
      const TensorView view = source.Find(name).value();
      tensors.emplace_back(name, view);
      if (!is_tied && name.starts_with(embedding))
        tensors.emplace_back(head + name.substr(embedding.size()), view);
    }
    std::vector<PlannedTensor> plan;
    for (const auto& [name, view] : tensors) plan.push_back({name, view.dtype, view.shape});
    testing::TemporaryFolder folder;
    const auto out = folder.path() / "out";
    CheckpointWriter writer = CheckpointWriter::Create(out, plan).value();
    for (const auto& [name, view] : tensors) ASSERT_OK(writer.Write(name, view));
    ASSERT_OK(writer.Finish());
    SetConfig("tie_word_embeddings", is_tied);
    std::filesystem::copy_file(copy_.path() / "config.json",
                               writer.unfinished_folder() / "config.json");
    ASSERT_OK(writer.Commit());
    const auto loaded = LoadModel(out, {}, context_.context);
    ASSERT_OK(loaded);
    EXPECT_EQ((*loaded)->model().head_is_embedding, is_tied);
    logits.push_back(Logits((*loaded)->model()));
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST_F(QuantizedEmbedding, OtherKindsAreRefused) {
  SetConfig("quantization_config", ParseJson(R"({"config_groups": {"g": {"targets": ["Embedding"],
                          "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
                                             "test")
                                       .value());
  const auto loaded = LoadModel(copy_.path(), {}, context_.context);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("model.embed_tokens: an embedding quantized as"),
            std::string::npos)
      << loaded.status().message();
}

}  // namespace
}  // namespace octavo
