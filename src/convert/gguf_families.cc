#include "convert/gguf_families.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace octavo {

namespace {

void AddLlamaConfig(Value& config) {
  config.Set("pretraining_tp", 1);
}

// The file does not tell a window: llama.cpp runs these models without one.
void AddQwenConfig(Value& config) {
  config.Set("sliding_window", nullptr);
  config.Set("use_sliding_window", false);
}

// Mistral's models without a window too, as they compute the same.
constexpr GgufFamily kLlama = {.architecture = "llama",
                               .class_name = "LlamaForCausalLM",
                               .model_type = "llama",
                               .paired_rotary = true,
                               .bias = GgufBias::kAttentionAndMlp,
                               .add_config = AddLlamaConfig};

constexpr GgufFamily kMistral = {.architecture = "llama",
                                 .class_name = "MistralForCausalLM",
                                 .model_type = "mistral",
                                 .windowed = true,
                                 .paired_rotary = true};

constexpr GgufFamily kQwen2 = {.architecture = "qwen2",
                               .class_name = "Qwen2ForCausalLM",
                               .model_type = "qwen2",
                               .bias = GgufBias::kQkv,
                               .add_config = AddQwenConfig};

constexpr GgufFamily kQwen3 = {.architecture = "qwen3",
                               .class_name = "Qwen3ForCausalLM",
                               .model_type = "qwen3",
                               .qk_norm = true,
                               .bias = GgufBias::kAttention,
                               .states_head_dim = true,
                               .add_config = AddQwenConfig};

constexpr std::array kFamilies = {&kLlama, &kMistral, &kQwen2, &kQwen3};

}  // namespace

Result<const GgufFamily*> FindGgufFamily(const Value& metadata) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string architecture,
                          metadata.RequireString("general.architecture"));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t window,
                          metadata.GetInt(architecture + ".attention.sliding_window", 0));
  std::string known;
  for (const GgufFamily* family : kFamilies) {
    if (family->architecture == architecture && family->windowed == (window != 0)) return family;
    known += (known.empty() ? "" : ", ") + std::string(family->architecture) +
             (family->windowed ? " with one" : "");
  }
  return Unsupported(fmt::format("architecture {} {} a sliding window, only {} are imported",
                                 architecture, window != 0 ? "with" : "without", known));
}

}  // namespace octavo
