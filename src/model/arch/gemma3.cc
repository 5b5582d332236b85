// Gemma 3 (text): Gemma 2's block with norms of queries and keys; sliding layers have a rope of
// their own.
#include <cmath>

#include "model/arch/gemma_config.h"
#include "model/architecture.h"

namespace octavo {

namespace {

// Transformers 4 has the rope of sliding layers in a key of its own.
Status ReadLocalRope(const Value& config, ModelSpec* spec) {
  if (spec->window_rope) return OkStatus();
  RopeSpec local;
  OCTAVO_ASSIGN_OR_RETURN(local.theta, config.GetDouble("rope_local_base_freq", 10000));
  if (!(local.theta > 0) || !std::isfinite(local.theta))
    return InvalidArgument("\"rope_local_base_freq\" is no positive number");
  spec->window_rope = local;
  return OkStatus();
}

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(
      ModelSpec spec,
      ReadGemmaConfig(config, {.max_position_embeddings = 131072, .rope_theta = 1000000}));
  spec.architecture = "Gemma3ForCausalLM";
  spec.post_norms = true;
  spec.qk_norm = QkNorm::kHeads;
  OCTAVO_ASSIGN_OR_RETURN(const float scalar, ReadFactor(config, "query_pre_attn_scalar", 256));
  spec.attention_scale = 1 / std::sqrt(scalar);
  OCTAVO_ASSIGN_OR_RETURN(spec.attention_soft_cap,
                          ReadSoftCap(config, "attn_logit_softcapping", 0));
  OCTAVO_ASSIGN_OR_RETURN(spec.logits_soft_cap, ReadSoftCap(config, "final_logit_softcapping", 0));
  OCTAVO_RETURN_IF_ERROR(ReadLocalRope(config, &spec));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t pattern, config.GetInt("sliding_window_pattern", 6));
  if (pattern < 1) return InvalidArgument("\"sliding_window_pattern\" is no positive number");
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, 4096));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [&](int64_t layer) { return (layer + 1) % pattern != 0; }, &spec));
  return spec;
}

}  // namespace

extern const Architecture kGemma3;
const Architecture kGemma3 = {.class_names = {"Gemma3ForCausalLM"},
                              .summary =
                                  "Gemma 2's, with norms of each head of q and k, and a rope of "
                                  "its own on sliding layers (text part)",
                              .parse_config = ParseConfig,
                              .module_names = GemmaNames};

}  // namespace octavo
