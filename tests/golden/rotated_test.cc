// SpinQuant and QuIP: what the library's recipes make of the tiny model, compared with what it
// saved; and, of every rotation, that the model computes what it did.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "compress/check_rotation.h"
#include "compress/fold_rotations.h"
#include "compress/plan.h"
#include "golden/quantize_fixture.h"
#include "io/checkpoint_writer.h"
#include "quant/scheme.h"
#include "runtime/load.h"
#include "support/first_block.h"
#include "support/model_logits.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::QuantizeGolden;
using testing::TestData;

const LoadOptions kNoBlocks = {.prepare = {}, .load_blocks = false};

class Rotated : public QuantizeGolden {
 protected:
  // Rows of the embedding have no mean.
  std::filesystem::path Centered(const std::string& model) {
    return Copied(model, DType::kBF16, "-centered", [](const std::string& name, Tensor* values) {
      if (name != "model.embed_tokens.weight") return;
      const auto width = static_cast<size_t>(values->dim(1));
      const std::span<float> all = values->mutable_data<float>();
      for (size_t first = 0; first < all.size(); first += width) {
        const std::span<float> row = all.subspan(first, width);
        const double mean =
            std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(width);
        for (float& value : row) value = static_cast<float>(static_cast<double>(value) - mean);
      }
    });
  }

  // No element differs by more than `bound` times the largest.
  static void ExpectNear(const std::string& name, const TensorView& found,
                         const TensorView& expected, double bound) {
    const Tensor ours = ToFloatTensor(found).value();
    const Tensor theirs = ToFloatTensor(expected).value();
    double largest = 0;
    double difference = 0;
    for (size_t i = 0; i < static_cast<size_t>(ours.elements()); ++i) {
      const auto a = static_cast<double>(ours.data<float>()[i]);
      const auto b = static_cast<double>(theirs.data<float>()[i]);
      largest = std::max(largest, std::fabs(b));
      difference = std::max(difference, std::fabs(a - b));
    }
    EXPECT_LE(difference, bound * largest) << name;
  }

  static std::string WithRotation(const std::string& rotation) {
    return "s_stage: {m_modifiers: {" + rotation +
           ", QuantizationModifier: {scheme: W8A8, targets: [Linear], ignore: [lm_head]}}}";
  }

  // How far the model is from itself after a recipe's rotations.
  Result<double> ErrorOf(const std::filesystem::path& model, const std::string& rotation) {
    const Context& context = context_.context;
    OCTAVO_ASSIGN_OR_RETURN(const Recipe recipe,
                            ParseRecipe(WithRotation(rotation), "recipe.yaml", context.log));
    OCTAVO_ASSIGN_OR_RETURN(const auto original, LoadModel(model, kNoBlocks, context));
    OCTAVO_ASSIGN_OR_RETURN(const auto source, LoadModel(model, kNoBlocks, context));
    OCTAVO_ASSIGN_OR_RETURN(const QuantizationPlan plan, MakePlan(source.get(), recipe, context));
    EXPECT_TRUE(plan.rotates());
    return RotationError(original.get(), source.get(), context);
  }
};

// ---- as the library does it --------------------------------------------------------------------

struct Case {
  std::string name;
  bool random = false;  // its matrix for down_proj (spin) or for every layer (quip) is another
};

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.name;
}

class RotatedGolden : public Rotated, public ::testing::WithParamInterface<Case> {
 protected:
  static bool IsRandom(const std::string& name) {
    const bool quip = GetParam().name.find("quip") != std::string::npos;
    return GetParam().random && (quip ? name.find("_proj") != std::string::npos
                                      : name.find("down_proj") != std::string::npos);
  }
};

TEST_P(RotatedGolden, NamesShapesConfigAndValuesAreTheLibrarys) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(QuantizeLike(GetParam().name, options, context_.context));
  const std::filesystem::path golden = TestData("checkpoints/" + GetParam().name);
  const JsonStyle style{.indent = 2, .sort_keys = true};
  Value config = *Json(golden / "config.json").Find("quantization_config");
  // A rotation of queries makes the library declare that they are quantized, by accident.
  Value* groups = config.Find("config_groups");
  if (groups->Find("group_0")->Find("weights")->is_null()) {
    groups->Set("group_0", Value(*groups->Find("group_1")));
    groups->Erase("group_1");
  }
  EXPECT_EQ(WriteJson(*Json(options.out / "config.json").Find("quantization_config"), style),
            WriteJson(config, style));

  const auto ours = LoadModel(options.out, kNoBlocks, context_.context);
  const auto theirs = LoadModel(golden, kNoBlocks, context_.context);
  ASSERT_OK(ours);
  ASSERT_OK(theirs);
  const Checkpoint& found = (*ours)->checkpoint();
  const Checkpoint& expected = (*theirs)->checkpoint();
  ASSERT_EQ(found.Names(), expected.Names());
  for (const std::string& name : expected.Names()) {
    const TensorView a = *found.Find(name);
    const TensorView b = *expected.Find(name);
    EXPECT_EQ(a.dtype, b.dtype) << name;
    ASSERT_EQ(a.shape, b.shape) << name;
    // The library subtracts the mean of each row of the embedding, see EmbeddingKeepsItsMean.
    if (name == "model.embed_tokens.weight" || IsRandom(name)) continue;
    // So its keys and values have other ranges.
    if (name.ends_with(".k_scale") || name.ends_with(".v_scale")) continue;
    // It rounds to bf16 after each of up to three steps.
    if (a.dtype == DType::kBF16) ExpectNear(name, a, b, 3.0 / 256);
    if (a.dtype == DType::kF64) ExpectNear(name, a, b, 0);
  }
  // Codes, with their scales: up to a step where another rounding decides.
  for (size_t i = 0; i < (*ours)->model().blocks.size(); ++i) {
    const auto our_groups = (*ours)->model().blocks[i].groups();
    const auto their_groups = (*theirs)->model().blocks[i].groups();
    for (size_t g = 0; g < our_groups.size(); ++g) {
      for (size_t l = 0; l < our_groups[g]->layers.size(); ++l) {
        const LinearLayer& layer = our_groups[g]->layers[l];
        if (IsRandom(layer.name)) continue;
        const Scheme* scheme = SelectScheme(layer).value();
        const auto weight = [&](const Checkpoint& checkpoint) {
          LayerViews views;
          for (const std::string& name : checkpoint.NamesOf(layer.name))
            views[name.substr(layer.name.size() + 1)] = *checkpoint.Find(name);
          return scheme->dequantize(layer, views).value();
        };
        const Tensor a = weight(found);
        const Tensor b = weight(expected);
        double error = 0;
        double energy = 0;
        for (size_t e = 0; e < static_cast<size_t>(a.elements()); ++e) {
          error += std::pow(a.data<float>()[e] - b.data<float>()[e], 2);
          energy += std::pow(b.data<float>()[e], 2);
        }
        // As much as a step for one code in five would be; ReferenceStepsMeetEveryByte is sharp.
        const bool int8 = layer.quantization.weights->num_bits == 8;
        EXPECT_LE(error, (int8 ? 1.2e-4 : 2e-3) * energy) << layer.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, RotatedGolden,
                         ::testing::Values(Case{"llama-spin-w8a8"}, Case{"llama-spin-online"},
                                           Case{"llama-spin-online-kv"},
                                           Case{"llama-spin-online-random", true},
                                           Case{"llama-quip-w4a16", true}),
                         [](const auto& item) {
                           std::string name = item.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// By the library's steps, each rounded to bf16 (gains, R1, R2, R4), and its rounding to codes,
// every byte of weights and scales is met.
TEST_F(Rotated, ReferenceStepsMeetEveryByte) {
  const auto source = Checkpoint::Open(TestData("checkpoints/base-llama")).value();
  struct Made {
    std::string golden;
    int64_t hidden = 0, heads = 0, down = 0;  // sizes of R1, R2, R4; 0: none
  };
  for (const auto& [golden, of_hidden, of_heads, of_down] :
       {Made{"llama-spin-w8a8", 256, 64, 0}, Made{"llama-spin-online", 128, 64, 128},
        Made{"llama-spin-online-kv", 0, 0, 128}}) {
    const auto theirs = LoadModel(TestData("checkpoints/" + golden), kNoBlocks, context_.context);
    ASSERT_OK(theirs);
    const auto rotation = [](int64_t n) {
      std::vector<RotationStep> steps;
      if (n == 0) return steps;
      steps.push_back({std::make_shared<const Rotation>(
                           Rotation::Make(TransformType::kHadamard, "", n, 0).value()),
                       true});
      return steps;
    };
    const std::vector<RotationStep> hidden = rotation(of_hidden);
    const std::vector<RotationStep> heads = rotation(of_heads);
    const std::vector<RotationStep> down = rotation(of_down);
    for (const Block& of : (*theirs)->model().blocks) {
      for (const LinearGroup* group : of.groups()) {
        for (const LinearLayer& layer : group->layers) {
          Tensor weight = Tensor::CopyOf(*source.Find(layer.name + ".weight"));
          const auto step = [&](const WeightRotation& rotated, std::span<const float> gains = {}) {
            weight = RotateWeight(weight, gains, rotated, DType::kBF16, context_.context).value();
          };
          const bool is_input = group == &of.qkv || group == &of.gate_up;
          if (is_input) {
            const std::string& norm = group == &of.qkv ? of.attention_norm.name : of.mlp_norm.name;
            const Tensor gains = ToFloatTensor(*source.Find(norm + ".weight")).value();
            step({}, gains.data<float>());
          }
          step(is_input ? WeightRotation{.rows = hidden, .columns = {}}
                        : WeightRotation{.rows = {}, .columns = hidden});
          if (group == &of.attention_output) step({.rows = heads, .columns = {}});
          if (&layer == &of.qkv.layers[2]) step({.rows = {}, .columns = heads});
          if (group == &of.down) step({.rows = down, .columns = {}});
          auto codes =
              QuantizeToNearest(*layer.quantization.weights, ToFloatTensor(weight)->data<float>(),
                                layer.n, layer.k, DType::kBF16, Arithmetic::kReference);
          ASSERT_OK(codes);
          const LayerTensors packed =
              SelectScheme(layer).value()->pack(layer, *std::move(codes)).value();
          for (const auto& [suffix, tensor] : packed) {
            const TensorView expected = *(*theirs)->checkpoint().Find(layer.name + "." + suffix);
            ASSERT_EQ(tensor.num_bytes(), expected.num_bytes());
            EXPECT_EQ(std::memcmp(tensor.view().bytes, expected.bytes,
                                  static_cast<size_t>(expected.num_bytes())),
                      0)
                << golden << " " << layer.name << "." << suffix;
          }
        }
      }
    }
  }
}

// Once rows of the embedding have the mean that the library leaves them, none: that embedding, and
// the ranges of the first block's rotated keys and of its values, to the byte. The second block's
// come behind queries that the library rounded by a scale it never found (goldens/schemes, 18).
TEST_F(Rotated, CacheScalesAreTheLibrarys) {
  QuantizeOptions options = Options("base-llama", "out");
  options.model = Centered("checkpoints/base-llama");
  options.propagate = Propagate::kNone;  // the library calibrates the first block unquantized
  ASSERT_OK(QuantizeLike("llama-spin-online-kv", options, context_.context));
  const auto ours = Checkpoint::Open(options.out).value();
  const auto theirs = Checkpoint::Open(TestData("checkpoints/llama-spin-online-kv")).value();
  for (const std::string name : {"model.embed_tokens.weight", "model.layers.0.self_attn.k_scale",
                                 "model.layers.0.self_attn.v_scale"}) {
    const TensorView found = *ours.Find(name);
    const TensorView expected = *theirs.Find(name);
    ASSERT_EQ(found.num_bytes(), expected.num_bytes()) << name;
    EXPECT_EQ(std::memcmp(found.bytes, expected.bytes, static_cast<size_t>(found.num_bytes())), 0)
        << name;
  }
}

// An RMSNorm does not take the mean away, so it is not taken here: the embedding is the library's
// but for the first element of each Hadamard block, which is where a rotated mean ends up.
TEST_F(Rotated, EmbeddingKeepsItsMean) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(QuantizeLike("llama-spin-online", options, context_.context));
  const std::string name = "model.embed_tokens.weight";
  const auto floats = [&](const std::filesystem::path& folder) {
    return ToFloatTensor(*Checkpoint::Open(folder)->Find(name)).value();
  };
  const Tensor original = floats(options.model);
  const Tensor ours = floats(options.out);
  const Tensor theirs = floats(TestData("checkpoints/llama-spin-online"));
  constexpr int64_t kBlock = 128;
  const int64_t width = original.dim(1);
  for (int64_t row = 0; row < original.dim(0); ++row) {
    double mean = 0;
    for (int64_t j = 0; j < width; ++j)
      mean += static_cast<double>(original.data<float>()[static_cast<size_t>(row * width + j)]);
    mean /= static_cast<double>(width);
    for (int64_t j = 0; j < width; ++j) {
      const auto at = static_cast<size_t>(row * width + j);
      const double moved = j % kBlock == 0 ? mean * std::sqrt(static_cast<double>(kBlock)) : 0.0;
      ASSERT_NEAR(static_cast<double>(ours.data<float>()[at]),
                  static_cast<double>(theirs.data<float>()[at]) + moved, 0.03)
          << at;
    }
  }
}

// A recipe that has a transform_config does what the one that it came from did.
TEST_F(Rotated, ASavedTransformConfigRunsAsIfDerived) {
  const std::string derived =
      "SpinQuantModifier: {rotations: [r1, R2, R3, R4], transform_block_size: 128}, "
      "QuantizationModifier: {targets: [Linear], scheme: W4A16, ignore: [lm_head]}";
  const QuantizeOptions options = Options("base-llama", "derived");
  ASSERT_OK(QuantizeBy("s_stage: {m_modifiers: {" + derived + "}}", options, context_.context));
  const QuantizeOptions saved = Options("base-llama", "saved");
  ASSERT_OK(QuantizeLike("llama-spin-online", saved, context_.context));
  for (const char* file : {"model.safetensors", "config.json"})
    EXPECT_TRUE(ReadFile(options.out / file).value() == ReadFile(saved.out / file).value()) << file;
  const QuantizeOptions again = Options("base-llama", "again");
  ASSERT_OK(QuantizeBy(ReadFile(options.out / "recipe.yaml").value(), again, context_.context));
  EXPECT_TRUE(ReadFile(options.out / "model.safetensors").value() ==
              ReadFile(again.out / "model.safetensors").value());
}

// ---- the model computes what it did ------------------------------------------------------------

struct Function {
  std::string model;
  std::string rotation;
};

void PrintTo(const Function& item, std::ostream* out) {
  *out << item.model << ": " << item.rotation;
}

class FunctionKept : public Rotated, public ::testing::WithParamInterface<Function> {};

TEST_P(FunctionKept, WithinRounding) {
  const auto error = ErrorOf(Widened(GetParam().model), GetParam().rotation);
  ASSERT_OK(error);
  EXPECT_LE(*error, 1e-5);
}

std::vector<Function> Functions() {
  const std::string llama = "checkpoints/base-llama";
  std::vector<Function> functions;
  for (const char* type : {"hadamard", "random-hadamard", "random-matrix"}) {
    const std::string of_type = std::string("transform_type: ") + type;
    functions.push_back({llama, "SpinQuantModifier: {" + of_type + "}"});
    functions.push_back({llama,
                         "SpinQuantModifier: {rotations: [R1, R2, R3, R4], "
                         "transform_block_size: 64, " +
                             of_type + "}"});
    functions.push_back(
        {llama, "QuIPModifier: {ignore: [], transform_block_size: 128, " + of_type + "}"});
  }
  functions.push_back({llama, "QuIPModifier: {rotations: [u, v]}"});
  functions.push_back({llama, "QuIPModifier: {rotations: u, targets: ['re:.*down_proj$']}"});
  functions.push_back({llama,
                       "SpinQuantModifier: {rotations: [R4], precision: float32, "
                       "transform_type: random-matrix}"});
  functions.push_back({llama, "SpinQuantModifier: {}, QuIPModifier: {seed: 3}"});
  // Biases, norms of the heads, tied heads, head sizes that are no powers of two.
  const std::string all = "SpinQuantModifier: {rotations: [R1, R2, R3, R4], transform_type: ";
  for (const char* model : {"arch/llama_mha_bias", "arch/llama_tied", "arch/qwen2", "arch/qwen3",
                            "arch/mistral_head_dim"})
    functions.push_back({model, all + "random-hadamard}"});
  for (const char* model : {"arch/llama_mha_bias", "arch/llama_tied", "arch/qwen2", "arch/qwen3"})
    functions.push_back({model, all + "hadamard, transform_block_size: 16}"});
  functions.push_back(
      {"arch/qwen2", "SpinQuantModifier: {rotations: R4, transform_block_size: 8}"});
  functions.push_back({"arch/llama_tied", "QuIPModifier: {ignore: [], rotations: [v, u]}"});
  return functions;
}

INSTANTIATE_TEST_SUITE_P(All, FunctionKept, ::testing::ValuesIn(Functions()));

// The mapping of a recipe that does not cancel is noticed before the work.
TEST_F(Rotated, RotationsThatDoNotCancelAreRefused) {
  const auto report = QuantizeBy(
      WithRotation("SpinQuantModifier: {mappings: {attn_o: 're:.*q_proj$'}, rotations: [R1]}"),
      Options("base-llama", "out"), context_.context);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("do not cancel"), std::string::npos)
      << report.status().message();
}

// ---- what is built on it -----------------------------------------------------------------------

// A static scale is that of the input as it is when it is rounded: rotated.
TEST_F(Rotated, StaticScalesAreOfRotatedInputs) {
  const QuantizeOptions options = Options("base-llama", "out");
  const std::string recipe =
      "s_stage: {m_modifiers: {QuIPModifier: {}, QuantizationModifier: {ignore: [lm_head], "
      "config_groups: {g: {targets: [Linear], weights: {strategy: channel}, input_activations: "
      "{strategy: tensor}}}}}}";
  ASSERT_OK(QuantizeBy(recipe, options, context_.context));
  const auto source = LoadModel(options.model, {}, context_.context);
  const auto made = LoadModel(options.out, {}, context_.context);
  ASSERT_OK(source);
  ASSERT_OK(made);
  const Block& from = (*source)->model().blocks[0];
  const Block& to = (*made)->model().blocks[0];
  for (const auto& [group, rotated] : {std::pair(&from.qkv, &to.qkv), {&from.down, &to.down}}) {
    const LinearLayer& layer = rotated->layers.front();
    float largest = 0;
    float unrotated = 0;
    const Tap tap = [&, wanted = group](const LinearGroup& tapped, const Rows& input) {
      if (&tapped != wanted) return;
      std::vector<float> x(input.data, input.data + input.m * input.k);
      for (const float value : x) unrotated = std::max(unrotated, std::fabs(value));
      layer.input_transforms.front()->ApplyInPlace(x.data(), input.k, input.m, input.k,
                                                   context_.context);
      for (const float value : x) largest = std::max(largest, std::fabs(value));
    };
    testing::TapFirstBlock((*source)->model(), tap, context_.context);
    const Tensor scale =
        ToFloatTensor(*(*made)->checkpoint().Find(layer.name + ".input_scale")).value();
    EXPECT_NEAR(scale.data<float>()[0], largest / 127.5F, 0.01F * largest / 127.5F) << layer.name;
    EXPECT_GT(std::fabs(unrotated - largest), 0.05F * largest) << "the test tells nothing";
  }
}

// GPTQ works on what the rotated model's inputs are, so it loses less than rounding to nearest.
TEST_F(Rotated, GptqGainsOnRotatedInputs) {
  const auto golden =
      SafetensorsFile::Open(TestData("checkpoints/llama-quip-w4a16/golden.safetensors")).value();
  const auto logits = [&](const std::filesystem::path& folder) {
    const auto model = LoadModel(folder, {}, context_.context).value();
    return testing::LogitsOf(model->model(), *golden.Find("input_ids"), context_.context);
  };
  const std::vector<float> original = logits(TestData("checkpoints/base-llama"));
  const auto loss = [&](const std::string& modifier, const std::string& out) {
    const QuantizeOptions options = Options("base-llama", out);
    EXPECT_TRUE(QuantizeBy("s_stage: {m_modifiers: {SpinQuantModifier: {rotations: [R1, R2, R4], "
                           "transform_block_size: 128}, QuIPModifier: {}, " +
                               modifier + ": {scheme: W4A16, ignore: [lm_head]}}}",
                           options, context_.context)
                    .ok());
    double squares = 0;
    const std::vector<float> quantized = logits(options.out);
    for (size_t i = 0; i < original.size(); ++i)
      squares += std::pow(static_cast<double>(quantized[i] - original[i]), 2);
    return std::sqrt(squares / static_cast<double>(original.size()));
  };
  const double gptq = loss("GPTQModifier", "gptq");
  const double nearest = loss("QuantizationModifier", "nearest");
  EXPECT_LT(gptq, 0.8 * nearest) << nearest;
}

TEST_F(Rotated, AnFp8SourceIsDequantizedAndRotated) {
  QuantizeOptions options = Options("foreign-fp8-static", "out");
  ASSERT_OK(QuantizeBy(WithRotation("SpinQuantModifier: {}"), options, context_.context));
  ASSERT_OK(LoadModel(options.out, {}, context_.context));
}

// ---- tied heads --------------------------------------------------------------------------------

TEST_F(Rotated, ATiedHeadIsUntiedWhereItIsRotated) {
  const std::string r1 = WithRotation("SpinQuantModifier: {}");
  QuantizeOptions options = Options("base-llama", "untied");
  options.model = TestData("arch/llama_tied");
  ASSERT_OK(QuantizeBy(r1, options, context_.context));
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(false));
  EXPECT_TRUE(Checkpoint::Open(options.out)->Contains("lm_head.weight"));
  ASSERT_OK(LoadModel(options.out, {}, context_.context));

  options.out = folder_.path() / "tied";
  ASSERT_OK(
      QuantizeBy(WithRotation("SpinQuantModifier: {rotations: [R4], transform_block_size: 8}"),
                 options, context_.context));
  EXPECT_EQ(*Json(options.out / "config.json").Find("tie_word_embeddings"), Value(true));
  EXPECT_FALSE(Checkpoint::Open(options.out)->Contains("lm_head.weight"));
}

}  // namespace
}  // namespace octavo
