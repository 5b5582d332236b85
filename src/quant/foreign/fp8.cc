// FP8 as DeepSeek, Qwen, Mistral and AutoFP8 publish it: `quant_method` fp8.
#include <fmt/format.h>

#include "quant/foreign/foreign_format.h"

namespace octavo {

namespace {

// [rows, columns], or none: a scale a tensor.
Result<const Value*> FindBlock(const Value& json) {
  const Value* block = json.Find("weight_block_size");
  if (block == nullptr || block->is_null()) return static_cast<const Value*>(nullptr);
  const bool is_pair = block->is_array() && block->as_array().size() == 2 &&
                       block->as_array()[0].is_int() && block->as_array()[1].is_int();
  if (is_pair) return block;
  return InvalidArgument("weight_block_size: expected [rows, columns] or null");
}

Result<QuantizationArgs> ParseWeights(const Value* block) {
  Value args;
  args.Set("num_bits", 8);
  args.Set("type", "float");
  args.Set("strategy", block == nullptr ? "tensor" : "block");
  if (block != nullptr) args.Set("block_structure", *block);
  return ParseQuantizationArgs(args, "weight_block_size");
}

// Dynamic inputs have a scale for each token and as many columns as a block has, or one a token.
Result<QuantizationArgs> ParseInput(const Value& json, const Value* block) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string scheme, json.GetString("activation_scheme", "dynamic"));
  if (scheme != "dynamic" && scheme != "static")
    return InvalidArgument(
        fmt::format("activation_scheme is \"{}\", expected dynamic or static", scheme));
  const bool is_dynamic = scheme == "dynamic";
  if (block != nullptr && !is_dynamic)
    return Unsupported("activation_scheme static with weight_block_size: expected dynamic");
  Value args;
  args.Set("num_bits", 8);
  args.Set("type", "float");
  args.Set("dynamic", is_dynamic);
  args.Set("strategy", block != nullptr ? "group" : is_dynamic ? "token" : "tensor");
  if (block != nullptr) args.Set("group_size", block->as_array()[1]);
  return ParseQuantizationArgs(args, "activation_scheme");
}

// A name stands for the module, for all below it, and for any module that it is the end of.
std::string IgnorePattern(const std::string& name) {
  return "re:(.*\\.)?" + EscapeRegex(name) + "(\\.|$)";
}

Result<QuantizationConfig> ParseConfig(const Value& json) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string format, json.GetString("fmt", "e4m3"));
  if (format != "e4m3") return Unsupported(fmt::format("fmt is \"{}\", expected e4m3", format));
  OCTAVO_ASSIGN_OR_RETURN(const Value* block, FindBlock(json));
  QuantizationScheme scheme;
  OCTAVO_ASSIGN_OR_RETURN(scheme.weights, ParseWeights(block));
  OCTAVO_ASSIGN_OR_RETURN(scheme.input_activations, ParseInput(json, block));
  scheme.format = "fp8";
  // The head is not quantized, listed or not.
  std::vector<std::string> ignore = {"lm_head"};
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          FirstStrings(json, {"modules_to_not_convert", "ignored_layers"}));
  for (const std::string& name : names) {
    if (name != "lm_head") ignore.push_back(IgnorePattern(name));
  }
  return OneGroup(std::move(scheme), std::move(ignore), "fp8");
}

Result<QuantizationConfig> Parse(const Value& json, std::string_view where) {
  auto config = ParseConfig(json);
  if (!config.ok()) return config.status().Annotate(where);
  return config;
}

}  // namespace

extern const ForeignFormat kFp8Format;
const ForeignFormat kFp8Format = {.quant_method = "fp8", .parse = Parse};

}  // namespace octavo
