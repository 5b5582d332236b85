// What a recipe may target, and what becomes of the tensors that it does not: heads, tensors of
// modules that are not known, dtypes other than the model's.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "golden/quantize_fixture.h"
#include "io/checkpoint.h"
#include "runtime/load.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::QuantizeGolden;
using testing::TestContext;
using testing::TestData;

// Keeps what is logged.
class LogText : public Logger {
 public:
  void Debug(std::string_view) override {}
  void Info(std::string_view message) override { text += std::string(message) + "\n"; }
  void Warning(std::string_view message) override { text += std::string(message) + "\n"; }
  std::string text;
};

class Targets : public QuantizeGolden {
 protected:
  using Edit = std::function<void(Value* config, std::map<std::string, Tensor>* tensors)>;

  // A copy of base-llama with some change, under the folder's name.
  std::filesystem::path EditedModel(const Edit& edit) {
    const std::filesystem::path model = folder_.path() / "model";
    std::filesystem::create_directory(model);
    const auto file = SafetensorsFile::Open(TestData("checkpoints/base-llama/model.safetensors"));
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, view] : file->tensors()) tensors[name] = Tensor::CopyOf(view);
    Value config = Json(TestData("checkpoints/base-llama/config.json"));
    edit(&config, &tensors);
    EXPECT_TRUE(WriteFileAtomically(model / "config.json", WriteJson(config)).ok());
    std::vector<std::pair<std::string, TensorView>> views;
    for (const auto& [name, tensor] : tensors) views.emplace_back(name, tensor.view());
    EXPECT_TRUE(WriteSafetensors(model / "model.safetensors", views).ok());
    return model;
  }

  Checkpoint Open(const std::filesystem::path& folder) {
    auto checkpoint = Checkpoint::Open(folder);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
    return std::move(checkpoint).value();
  }
};

constexpr char kNearest[] =
    "s_stage: {m_modifiers: {QuantizationModifier: {scheme: W8A8, targets: [Linear], ignore: "
    "[lm_head]}}}";
constexpr char kNearestWithHead[] =
    "s_stage: {m_modifiers: {QuantizationModifier: {scheme: W8A8, targets: [Linear], ignore: "
    "[]}}}";

bool SameBytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.bytes, b.bytes, static_cast<size_t>(a.num_bytes())) == 0;
}

TEST_F(Targets, AHeadThatIsTargetedIsQuantizedAndRuns) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(QuantizeBy(kNearestWithHead, options, context_.context));
  const Checkpoint checkpoint = Open(options.out);
  EXPECT_EQ(checkpoint.Find("lm_head.weight")->dtype, DType::kI8);
  EXPECT_EQ(checkpoint.Find("lm_head.weight_scale")->shape, (Shape{128, 1}));
  const Value config = Json(options.out / "config.json");
  EXPECT_TRUE(config.Find("quantization_config")->Find("ignore")->as_array().empty());
  const auto loaded = LoadModel(options.out, {}, context_.context);
  ASSERT_OK(loaded);
  ASSERT_EQ((*loaded)->model().head.parts.size(), 1U);
  EXPECT_NE((*loaded)->model().head.parts[0]->Describe().find("W8A8 INT8"), std::string::npos);
}

// Targeting lm_head by name alone leaves the blocks as they are.
TEST_F(Targets, TheHeadAloneByGptqWithStaticInputs) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(QuantizeBy(R"(
s_stage:
  m_modifiers:
    GPTQModifier:
      config_groups:
        g:
          targets: [lm_head]
          weights: {num_bits: 8, strategy: channel}
          input_activations: {num_bits: 8, strategy: tensor, symmetric: false}
)",
                       options, context_.context));
  const Checkpoint source = Open(options.model);
  const Checkpoint checkpoint = Open(options.out);
  for (const std::string& name : source.Names()) {
    if (name == "lm_head.weight") continue;
    EXPECT_TRUE(SameBytes(*source.Find(name), *checkpoint.Find(name))) << name;
  }
  EXPECT_EQ(checkpoint.NamesOf("lm_head"),
            (std::vector<std::string>{"lm_head.input_scale", "lm_head.input_zero_point",
                                      "lm_head.weight", "lm_head.weight_scale"}));
  const Value report = Json(options.out / "quantization_report.json");
  ASSERT_EQ(report.Find("layers")->as_array().size(), 1U);
  const Value& layer = report.Find("layers")->as_array().front();
  EXPECT_EQ(layer.Find("method")->as_string(), "gptq");
  EXPECT_LT(layer.Find("error")->as_double(), layer.Find("error_to_nearest")->as_double());
}

// Asks for a stop after some steps.
class StopAt : public Progress {
 public:
  StopAt(int step, std::atomic<bool>* cancelled) : step_(step), cancelled_(cancelled) {}
  void Start(std::string_view, int64_t) override {}
  void Advance(int64_t, std::string_view) override {
    if (++steps_ == step_) *cancelled_ = true;
  }
  void Finish() override {}

 private:
  int step_;
  int steps_ = 0;
  std::atomic<bool>* cancelled_;
};

TEST_F(Targets, ARunThatStoppedBetweenTheLastBlockAndTheHeadGoesOn) {
  const std::string recipe =
      "s_stage: {m_modifiers: {GPTQModifier: {scheme: W8A8, targets: [Linear], ignore: []}}}";
  const QuantizeOptions whole = Options("base-llama", "whole");
  ASSERT_OK(QuantizeBy(recipe, whole, context_.context));

  const QuantizeOptions options = Options("base-llama", "out");
  std::atomic<bool> cancelled = false;
  StopAt progress(2, &cancelled);  // the model has two blocks
  const Context stopping{.pool = context_.pool,
                         .isa = context_.context.isa,
                         .progress = progress,
                         .cancelled = &cancelled};
  const auto stopped = QuantizeBy(recipe, options, stopping);
  ASSERT_EQ(stopped.status().code(), StatusCode::kCancelled);
  EXPECT_NE(stopped.status().message().find("2 of 2 blocks are done"), std::string::npos)
      << stopped.status().message();
  ASSERT_OK(QuantizeBy(recipe, options, context_.context));
  EXPECT_EQ(ReadFile(options.out / "model.safetensors").value(),
            ReadFile(whole.out / "model.safetensors").value());
}

TEST_F(Targets, ATiedHeadIsUntiedOnlyWhenItIsTargeted) {
  QuantizeOptions options = Options("base-llama", "out");
  options.model = EditedModel([](Value* config, std::map<std::string, Tensor>* tensors) {
    config->Set("tie_word_embeddings", true);
    tensors->erase("lm_head.weight");
  });
  ASSERT_OK(QuantizeBy(kNearest, options, context_.context));
  EXPECT_TRUE(Open(options.out).NamesOf("lm_head").empty());
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(true));

  options.force = true;
  ASSERT_OK(QuantizeBy(kNearestWithHead, options, context_.context));
  const Checkpoint source = Open(options.model);
  const Checkpoint untied = Open(options.out);
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(false));
  EXPECT_TRUE(SameBytes(*source.Find("model.embed_tokens.weight"),
                        *untied.Find("model.embed_tokens.weight")));
  // The head's codes times its scales are the embedding, to half a step.
  const Tensor embedding = ToFloatTensor(*source.Find("model.embed_tokens.weight")).value();
  const Tensor scales = ToFloatTensor(*untied.Find("lm_head.weight_scale")).value();
  const auto codes = untied.Find("lm_head.weight")->data<int8_t>();
  for (size_t i = 0; i < codes.size(); ++i) {
    const float scale = scales.data<float>()[i / 256];
    ASSERT_NEAR(static_cast<float>(codes[i]) * scale, embedding.data<float>()[i], 0.51F * scale);
  }
  const auto loaded = LoadModel(options.out, {}, context_.context);
  ASSERT_OK(loaded);
  EXPECT_FALSE((*loaded)->model().head_is_embedding);
}

// What is targeted with integers of 8 bits in groups of 128: weights alone, as embeddings must be.
std::string Modifier(const std::string& name, const std::string& targets,
                     const std::string& ignore) {
  return "s_stage: {m_modifiers: {" + name + ": {scheme: W8A16, targets: [" + targets +
         "], ignore: [" + ignore + "]}}}";
}

TEST_F(Targets, ATiedEmbeddingThatIsQuantizedAloneIsUntied) {
  QuantizeOptions options = Options("base-llama", "out");
  options.model = EditedModel([](Value* config, std::map<std::string, Tensor>* tensors) {
    config->Set("tie_word_embeddings", true);
    tensors->erase("lm_head.weight");
  });
  ASSERT_OK(QuantizeBy(Modifier("QuantizationModifier", "Linear, Embedding", "lm_head"), options,
                       context_.context));
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(false));
  const Checkpoint source = Open(options.model);
  const Checkpoint untied = Open(options.out);
  EXPECT_TRUE(SameBytes(*source.Find("model.embed_tokens.weight"), *untied.Find("lm_head.weight")));
  EXPECT_FALSE(untied.Contains("model.embed_tokens.weight"));
  const auto loaded = LoadModel(options.out, {}, context_.context);
  ASSERT_OK(loaded);
  EXPECT_FALSE((*loaded)->model().head_is_embedding);
  ASSERT_NE((*loaded)->model().embedding_table, nullptr);
  const Tensor embedding = ToFloatTensor(*source.Find("model.embed_tokens.weight")).value();
  std::vector<float> row(256);
  (*loaded)->model().embedding_table->Read(5, row.data());
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_NEAR(row[i], embedding.data<float>()[5 * 256 + i], 0.05F) << i;
}

TEST_F(Targets, ATiedHeadAndEmbeddingOfTheSameCodesStayTied) {
  QuantizeOptions options = Options("base-llama", "nearest");
  options.model = EditedModel([](Value* config, std::map<std::string, Tensor>* tensors) {
    config->Set("tie_word_embeddings", true);
    tensors->erase("lm_head.weight");
  });
  ASSERT_OK(QuantizeBy(Modifier("QuantizationModifier", "Linear, Embedding", ""), options,
                       context_.context));
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(true));
  EXPECT_TRUE(Open(options.out).NamesOf("lm_head").empty());
  EXPECT_FALSE(Open(options.out).NamesOf("model.embed_tokens").empty());
  const auto tied = LoadModel(options.out, {}, context_.context);
  ASSERT_OK(tied);
  EXPECT_TRUE((*tied)->model().head_is_embedding);

  // GPTQ goes by the head's input, which the embedding does not have.
  options.out = folder_.path() / "gptq";
  ASSERT_OK(
      QuantizeBy(Modifier("GPTQModifier", "Linear, Embedding", ""), options, context_.context));
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(false));
  const Checkpoint untied = Open(options.out);
  EXPECT_FALSE(SameBytes(*untied.Find("lm_head.weight_packed"),
                         *untied.Find("model.embed_tokens.weight_packed")));
  EXPECT_TRUE(
      SameBytes(*untied.Find("model.embed_tokens.weight_packed"),
                *Open(folder_.path() / "nearest").Find("model.embed_tokens.weight_packed")));
}

TEST_F(Targets, TensorsOfUnknownModulesAreCopiedAndListedWhereEnginesWouldTakeThem) {
  QuantizeOptions options = Options("base-llama", "out");
  const float infinity = std::numeric_limits<float>::infinity();
  options.model = EditedModel([&](Value*, std::map<std::string, Tensor>* tensors) {
    const auto add = [&](const std::string& name, Shape shape, float value) {
      const std::vector<float> values(static_cast<size_t>(Elements(shape)), value);
      (*tensors)[name] = FromFloat(values, DType::kBF16, shape).value();
    };
    add("model.layers.2.self_attn.q_proj.weight", {8, 4}, 1);  // a layer for multi-token prediction
    add("model.layers.2.self_attn.q_proj.bias", {8}, 1);
    add("mtp.eh_proj.weight", {4, 8}, 2);
    add("mtp.enorm.weight", {4}, 1);
    add("vision.patch_embed.weight", {4, 3}, 1);
    add("vision.blocks.0.fc1.weight", {4, 4}, 3);
    add("vision.blocks.1.fc1.weight", {4, 4}, 3);
    add("vision.conv.weight", {4, 3, 2, 2}, 1);
    add("vision.mask", {4}, -infinity);
    add("model.layers.0.self_attn.rotary_emb.inv_freq", {32}, 0.5F);
  });
  LogText log;
  const Context context{.pool = context_.pool, .isa = context_.context.isa, .log = log};
  ASSERT_OK(QuantizeBy(kNearest, options, context));
  const Checkpoint source = Open(options.model);
  const Checkpoint checkpoint = Open(options.out);
  for (const std::string& name : source.Names()) {
    if (!name.starts_with("mtp.") && !name.starts_with("vision.") &&
        !name.starts_with("model.layers.2.") && !name.ends_with("inv_freq")) {
      continue;
    }
    ASSERT_TRUE(checkpoint.Contains(name)) << name;
    EXPECT_TRUE(SameBytes(*source.Find(name), *checkpoint.Find(name))) << name;
  }
  const Value config = Json(options.out / "config.json");
  EXPECT_EQ(*config.Find("quantization_config")->Find("ignore"),
            Value(Value::Array{"lm_head", "model.layers.2.self_attn.q_proj", "mtp.eh_proj",
                               "vision.blocks.0.fc1", "vision.blocks.1.fc1"}));
  EXPECT_NE(log.text.find("vision.blocks.*.fc1.weight (2)"), std::string::npos) << log.text;
  EXPECT_NE(log.text.find("mtp.eh_proj.weight"), std::string::npos) << log.text;
  log.text.clear();
  ASSERT_OK(LoadModel(options.out, {}, context));
  EXPECT_EQ(log.text.find("ignore entries that match no layer"), std::string::npos) << log.text;
}

// float16, float32 and bfloat16 in one file, the model's dtype being bfloat16.
TEST_F(Targets, MixedDtypesAreReadRightAndKept) {
  QuantizeOptions options = Options("base-llama", "out");
  const std::string layer = "model.layers.0.mlp.down_proj";
  const std::string norm = "model.layers.0.input_layernorm.weight";
  const auto convert = [](Tensor* tensor, DType dtype) {
    const Tensor values = ToFloatTensor(tensor->view()).value();
    *tensor = FromFloat(values.data<float>(), dtype, tensor->shape()).value();
  };
  ASSERT_OK(QuantizeLike("llama-smooth5-w8a8", options, context_.context));
  const std::filesystem::path all_bf16 = options.out;
  options.model = EditedModel([&](Value*, std::map<std::string, Tensor>* tensors) {
    convert(&tensors->at(layer + ".weight"), DType::kF32);
    convert(&tensors->at("model.layers.1.self_attn.q_proj.weight"), DType::kF32);
    convert(&tensors->at(norm), DType::kF32);
    convert(&tensors->at("model.norm.weight"), DType::kF16);
    convert(&tensors->at("model.embed_tokens.weight"), DType::kF32);
  });
  options.out = folder_.path() / "mixed";
  ASSERT_OK(QuantizeLike("llama-smooth5-w8a8", options, context_.context));
  const Checkpoint source = Open(options.model);
  const Checkpoint mixed = Open(options.out);
  const Checkpoint expected = Open(all_bf16);
  for (const char* copied : {"model.norm.weight", "model.embed_tokens.weight"}) {
    EXPECT_TRUE(SameBytes(*source.Find(copied), *mixed.Find(copied))) << copied;
  }
  // The same numbers in a wider dtype quantize to the same codes, and scales in the model's dtype.
  for (const std::string tensor : {".weight", ".weight_scale"}) {
    EXPECT_TRUE(SameBytes(*expected.Find(layer + tensor), *mixed.Find(layer + tensor))) << tensor;
  }
  // A norm keeps its dtype, and in float32 is smoothed without rounding to bfloat16.
  EXPECT_EQ(mixed.Find(norm)->dtype, DType::kF32);
  const Tensor smoothed = ToFloatTensor(*mixed.Find(norm)).value();
  const Tensor rounded = ToFloatTensor(*expected.Find(norm)).value();
  bool finer = false;
  for (size_t i = 0; i < smoothed.data<float>().size(); ++i) {
    const float value = smoothed.data<float>()[i];
    EXPECT_NEAR(value, rounded.data<float>()[i], std::fabs(value) / 128);
    finer = finer || value != RoundToDType(value, DType::kBF16);
  }
  EXPECT_TRUE(finer);
}

TEST_F(Targets, AModelInFloat16HasScalesInFloat16) {
  QuantizeOptions options = Options("base-llama", "out");
  options.model = EditedModel([](Value* config, std::map<std::string, Tensor>* tensors) {
    config->Set("torch_dtype", "float16");
    for (auto& [name, tensor] : *tensors) {
      const Tensor values = ToFloatTensor(tensor.view()).value();
      tensor = FromFloat(values.data<float>(), DType::kF16, tensor.shape()).value();
    }
  });
  ASSERT_OK(QuantizeLike("llama-w8a8-static-asym", options, context_.context));
  const Checkpoint checkpoint = Open(options.out);
  const std::string layer = "model.layers.1.mlp.up_proj";
  EXPECT_EQ(checkpoint.Find(layer + ".weight_scale")->dtype, DType::kF16);
  EXPECT_EQ(checkpoint.Find(layer + ".input_scale")->dtype, DType::kF16);
  ASSERT_OK(LoadModel(options.out, {}, context_.context));
}

}  // namespace
}  // namespace octavo
