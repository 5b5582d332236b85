// Recipes that read well but do not fit the model, or ask for what cannot be made: each is refused
// before any work, by name and with the remedy.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/quantize_fixture.h"

namespace octavo {
namespace {

using testing::QuantizeGolden;

struct Refusal {
  std::string_view what;
  std::string modifiers;                  // YAML flow mapping
  std::vector<std::string_view> message;  // parts of it
};

std::string Nearest(std::string_view settings) {
  return "QuantizationModifier: {" + std::string(settings) + "}";
}

std::string Smooth(std::string_view settings) {
  return "SmoothQuantModifier: {" + std::string(settings) +
         "}, QuantizationModifier: {scheme: W8A8, ignore: [lm_head]}";
}

std::string Rotate(std::string_view rotations) {
  return std::string(rotations) + ", QuantizationModifier: {scheme: W8A8, ignore: [lm_head]}";
}

std::string Groups(std::string_view groups) {
  return Nearest("ignore: [lm_head], config_groups: {" + std::string(groups) + "}");
}

class Refusals : public QuantizeGolden {
 protected:
  Status Try(const std::string& modifiers, bool calibration = true) {
    QuantizeOptions options = Options("base-llama", "out");
    options.dry_run = true;
    if (!calibration) options.calibration.clear();
    const auto result =
        QuantizeBy("s_stage: {m_modifiers: {" + modifiers + "}}", options, context_.context);
    EXPECT_FALSE(std::filesystem::exists(options.out));
    return result.ok() ? OkStatus() : result.status();
  }
};

TEST_F(Refusals, EachNamesWhatAndTheRemedy) {
  const std::vector<Refusal> table = {
      {"targets that match nothing",
       Nearest("scheme: W8A8, targets: ['re:.*none', o_proj]"),
       {"QuantizationModifier", "re:.*none, o_proj", "match no linear layer",
        "model.layers.0.self_attn.q_proj", "lm_head"}},
      {"everything that is targeted is ignored",
       Nearest("scheme: W8A8, ignore: [Linear]"),
       {"without what it ignores (Linear)", "match no linear layer"}},
      {"q, k and v of different schemes",
       Nearest("scheme: W8A8, targets: ['re:.*q_proj']"),
       {"model.layers.0.self_attn.q_proj and model.layers.0.self_attn.k_proj",
        "different schemes (W8A8; not quantized)", "ignore both"}},
      {"gate and up of different schemes",
       Groups("a: {targets: ['re:.*gate_proj'], weights: {strategy: channel}, input_activations: "
              "{strategy: token, dynamic: true}}, b: {targets: ['re:.*up_proj'], weights: "
              "{strategy: tensor}, input_activations: {strategy: token, dynamic: true}}"),
       {"gate_proj and model.layers.0.mlp.up_proj", "W8A8; weights: 8-bit int, tensor"}},
      {"a form that no scheme computes",
       Groups("g: {targets: [Linear], weights: {type: float, num_bits: 8, strategy: group, "
              "group_size: 64}}"),
       {"cannot be made", "strategy is group", "Presets that can be made: W8A8, INT8", "W4A16"}},
      {"groups that do not divide the columns",
       Groups("g: {targets: [Linear], weights: {num_bits: 4, strategy: group, group_size: 96}}"),
       {"group size 96 does not divide", "256 columns", "q_proj", "use a group size of 64"}},
      {"outputs that are quantized",
       Groups("g: {targets: [Linear], weights: {strategy: channel}, input_activations: {strategy: "
              "token, dynamic: true}, output_activations: {strategy: tensor}}"),
       {"output activations are quantized"}},
      {"activations of layers alone",
       Groups("g: {targets: ['re:.*self_attn.*'], input_activations: {strategy: tensor}}"),
       {"the activations of model.layers.0.self_attn.q_proj", "target attention alone",
        "LlamaAttention"}},
      {"attention of one block",
       Groups("g: {targets: ['re:.*0.self_attn$'], input_activations: {strategy: tensor}}"),
       {"not that of model.layers.1.self_attn", "target the class, LlamaAttention"}},
      {"attention with zero points",
       Groups("g: {targets: [LlamaAttention], input_activations: {strategy: tensor, symmetric: "
              "false}}"),
       {"model.layers.0.self_attn (", "zero points (symmetric: false)", "declare {num_bits: 8"}},
      {"attention unlike its cache",
       Groups("g: {targets: [LlamaAttention], input_activations: {strategy: tensor}}}, "
              "kv_cache_scheme: {num_bits: 8, type: float"),
       {"kv_cache_scheme is 8-bit float", "leave kv_cache_scheme out"}},
      {"a cache of four bits",
       Nearest("scheme: W8A8, ignore: [lm_head], kv_cache_scheme: {num_bits: 4}"),
       {"kv_cache_scheme (4-bit int", "4 bits are not supported, 8 are"}},
      {"a cache whose scales are found at run time",
       Nearest("kv_cache_scheme: {num_bits: 8, strategy: token, dynamic: true}"),
       {"found while the model runs (dynamic)", "strategy: tensor (or attn_head)"}},
      {"an embedding",
       Nearest("scheme: W8A8, targets: [Linear, Embedding]"),
       {"model.embed_tokens is targeted with W8A8",
        "embeddings only support weight-only INT group/channel (WNA16)", "a group of its own",
        "target only \"Linear\""}},
      {"an embedding whose groups do not fit",
       Groups("g: {targets: [Embedding], weights: {num_bits: 4, strategy: group, group_size: 96}}"),
       {"model.embed_tokens: the group size 96 does not divide"}},
      {"a norm that is not there",
       Smooth("mappings: [[['re:.*q_proj'], 're:.*norm_of_attention']]"),
       {"[[re:.*q_proj], re:.*norm_of_attention] matches no norm",
        "model.layers.0.input_layernorm (feeds model.layers.0.self_attn.q_proj"}},
      {"the wrong norm",
       Smooth("mappings: [[['re:.*q_proj', 're:.*k_proj', 're:.*v_proj'], "
              "'re:.*post_attention_layernorm']]"),
       {"names model.layers.0.self_attn.v_proj, but model.layers.0.post_attention_layernorm feeds "
        "model.layers.0.mlp.gate_proj, model.layers.0.mlp.up_proj"}},
      {"a layer left out",
       Smooth("mappings: [[['re:.*q_proj', 're:.*k_proj'], 're:.*input_layernorm']]"),
       {"leaves out model.layers.0.self_attn.v_proj, which model.layers.0.input_layernorm feeds",
        "name all of"}},
      {"a layer too many",
       Smooth("mappings: [[['re:.*[qkvo]_proj'], 're:.*input_layernorm']]"),
       {"names model.layers.0.self_attn.o_proj, which its norm does not feed"}},
      {"a linear layer in place of a norm, of another size",
       Smooth("mappings: [[['re:.*o_proj'], 're:.*v_proj']]"),
       {"smooths model.layers.0.self_attn.v_proj, a linear layer of 128 outputs", "only a norm"}},
      {"the final norm",
       Smooth("mappings: [[[lm_head], model.norm]]"),
       {"smooths the final norm into the head, which is not supported"}},
      {"every norm ignored",
       Smooth("ignore: [RMSNorm, Linear]"),
       {"SmoothQuantModifier", "every norm is ignored"}},
      {"a Hadamard matrix of no power of two",
       Rotate("SpinQuantModifier: {rotations: [R4]}"),
       {"R4 at input of model.layers.0.mlp.down_proj", "not 384", "transform_block_size of 128",
        "random-hadamard"}},
      {"blocks that do not divide",
       Rotate("SpinQuantModifier: {rotations: [R1], transform_block_size: 96}"),
       {"R1 at weight_output of model.embed_tokens", "blocks of 96 do not divide its 256"}},
      {"targets of a rotation that match nothing",
       Rotate("QuIPModifier: {targets: ['re:.*none']}"),
       {"v at input matches no module: re:.*none", "model.layers.0.self_attn.q_proj"}},
      {"a rotation of one of the layers that share an input",
       Rotate("QuIPModifier: {targets: ['re:.*q_proj']}"),
       {"model.layers.0.self_attn.q_proj and model.layers.0.self_attn.k_proj read the same input",
        "ignore both"}},
      {"a rotation twice",
       "SpinQuantModifier: {}}, n_modifiers: {" + Rotate("SpinQuantModifier: {}"),
       {"R1 is the name of an earlier rotation"}},
      {"a rotation behind another that comes first",
       Rotate("QuIPModifier: {}, SpinQuantModifier: {}"),
       {"SpinQuantModifier stands behind a modifier whose rotations",
        "put SpinQuantModifier first"}},
      {"a rotation behind smoothing",
       Rotate("SmoothQuantModifier: {}, SpinQuantModifier: {}"),
       {"SpinQuantModifier stands behind SmoothQuantModifier"}},
      {"smoothing through a rotation at run time",
       Rotate("QuIPModifier: {}, SmoothQuantModifier: {}"),
       {"model.layers.0.input_layernorm would be smoothed into model.layers.0.self_attn.q_proj",
        "rotated while the model runs"}},
      {"AWQ where all inputs are rotated at run time",
       Rotate("QuIPModifier: {}, AWQModifier: {}"),
       {"AWQModifier", "nothing can be scaled"}},
      {"a rotation without anything that quantizes",
       "SpinQuantModifier: {}",
       {"quantizes nothing"}},
      {"nothing that quantizes",
       "SmoothQuantModifier: {}",
       {"quantizes nothing", "add a QuantizationModifier or GPTQModifier"}},
  };
  for (const Refusal& refusal : table) {
    SCOPED_TRACE(refusal.what);
    const Status status = Try(refusal.modifiers);
    EXPECT_FALSE(status.ok());
    for (const std::string_view part : refusal.message) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << "\"" << part << "\" is not in: " << status.message();
    }
  }
}

TEST_F(Refusals, WhoNeedsCalibrationDataIsSaid) {
  const std::string scales =
      "config_groups: {g: {targets: [Linear], weights: {strategy: channel}, input_activations: "
      "{strategy: tensor}}}, ignore: [lm_head]";
  for (const auto& [modifiers, who] : std::vector<std::pair<std::string, std::string>>{
           {Nearest(scales), "(for static scales of inputs)"},
           {"GPTQModifier: {scheme: W8A8, ignore: [lm_head]}", "(for GPTQModifier)"},
           {Smooth(""), "(for SmoothQuantModifier)"},
           {"GPTQModifier: {" + scales + "}", "(for GPTQModifier, static scales of inputs)"}}) {
    const Status status = Try(modifiers, /*calibration=*/false);
    EXPECT_NE(status.message().find("needs calibration data"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find(who), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("--calibration FILE"), std::string::npos) << status.message();
    EXPECT_TRUE(Try(modifiers, /*calibration=*/true).ok()) << modifiers;
  }
  const std::string cache = Nearest("kv_cache_scheme: {num_bits: 8, type: float}");
  EXPECT_NE(Try(cache, false).message().find("(for static scales of keys and values)"),
            std::string::npos);
  EXPECT_TRUE(Try(cache).ok());
  EXPECT_TRUE(Try(Nearest("scheme: W8A8, weight_observer: mse, ignore: [lm_head]"), false).ok());
}

}  // namespace
}  // namespace octavo
