// AutoAWQ: `quant_method` awq.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "quant/foreign/foreign_format.h"

namespace octavo {

namespace {

// Older files have the names that the tool's own quant_config.json uses.
Result<int64_t> RequireInt(const Value& json, std::string_view key, std::string_view old_key) {
  return json.Find(key) == nullptr && json.Find(old_key) != nullptr ? json.RequireInt(old_key)
                                                                    : json.RequireInt(key);
}

Result<QuantizationArgs> ParseWeights(const Value& json, std::string_view where) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t bits, RequireInt(json, "bits", "w_bit"));
  if (bits != 4) return Unsupported(fmt::format("bits is {}, expected 4", bits));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t group_size, RequireInt(json, "group_size", "q_group_size"));
  if (group_size != -1 && group_size <= 0) {
    return InvalidArgument(fmt::format(
        "group_size is {}, expected -1 (a scale a channel) or a positive number", group_size));
  }
  OCTAVO_ASSIGN_OR_RETURN(const bool has_zero_points, json.GetBool("zero_point", true));
  Value args;
  args.Set("num_bits", bits);
  args.Set("type", "int");
  args.Set("symmetric", !has_zero_points);
  args.Set("strategy", group_size > 0 ? "group" : "channel");
  if (group_size > 0) args.Set("group_size", group_size);
  return ParseQuantizationArgs(args, where);
}

// Only the layout of the `gemm` kernels is read.
Status CheckVersion(const Value& json) {
  OCTAVO_ASSIGN_OR_RETURN(std::string version, json.GetString("version", "gemm"));
  std::transform(version.begin(), version.end(), version.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  OCTAVO_ASSIGN_OR_RETURN(const std::string backend, json.GetString("backend", "autoawq"));
  if (version == "gemm" && backend == "autoawq") return OkStatus();
  return Unsupported(
      fmt::format("version is {}, backend {}: expected gemm and autoawq; save the model again with "
                  "them",
                  version, backend));
}

Result<QuantizationConfig> ParseConfig(const Value& json) {
  OCTAVO_RETURN_IF_ERROR(CheckVersion(json));
  QuantizationScheme scheme;
  OCTAVO_ASSIGN_OR_RETURN(scheme.weights, ParseWeights(json, "weights"));
  scheme.format = "awq";
  std::vector<std::string> ignore = {"lm_head"};
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                          FirstStrings(json, {"modules_to_not_convert"}));
  // The tool leaves out every layer whose name has one of these anywhere.
  for (const std::string& part : parts) ignore.push_back("re:.*" + EscapeRegex(part));
  return OneGroup(std::move(scheme), std::move(ignore), "awq");
}

Result<QuantizationConfig> Parse(const Value& json, std::string_view where) {
  auto config = ParseConfig(json);
  if (!config.ok()) return config.status().Annotate(where);
  return config;
}

}  // namespace

extern const ForeignFormat kAwqFormat;
const ForeignFormat kAwqFormat = {.quant_method = "awq", .parse = Parse};

}  // namespace octavo
