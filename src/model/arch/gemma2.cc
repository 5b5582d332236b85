// Gemma 2: norms also behind attention and MLP, soft caps, every other layer slides.
#include <cmath>

#include "model/arch/gemma_config.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadGemmaConfig(config, {.max_position_embeddings = 8192}));
  spec.architecture = "Gemma2ForCausalLM";
  spec.post_norms = true;
  OCTAVO_ASSIGN_OR_RETURN(const float scalar, ReadFactor(config, "query_pre_attn_scalar", 256));
  spec.attention_scale = 1 / std::sqrt(scalar);
  OCTAVO_ASSIGN_OR_RETURN(spec.attention_soft_cap,
                          ReadSoftCap(config, "attn_logit_softcapping", 50));
  OCTAVO_ASSIGN_OR_RETURN(spec.logits_soft_cap, ReadSoftCap(config, "final_logit_softcapping", 30));
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, 4096));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [](int64_t layer) { return layer % 2 == 0; }, &spec));
  return spec;
}

}  // namespace

extern const Architecture kGemma2;
const Architecture kGemma2 = {.class_names = {"Gemma2ForCausalLM"},
                              .summary =
                                  "Gemma's, with norms behind attention and MLP too, soft caps of "
                                  "scores and logits, every other layer slides",
                              .parse_config = ParseConfig,
                              .module_names = GemmaNames};

}  // namespace octavo
