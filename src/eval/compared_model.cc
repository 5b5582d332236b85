#include "eval/compared_model.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "eval/throughput.h"
#include "inspect/layer_table.h"
#include "io/sha256.h"
#include "tensor/dtype.h"

namespace octavo {

namespace {

std::string SchemeText(const LoadedModel& loaded) {
  const auto& config = loaded.quantization();
  if (!config) return std::string(DTypeName(loaded.model().spec.dtype));
  std::string text;
  for (const auto& [name, scheme] : config->config_groups)
    text += (text.empty() ? "" : "; ") + DeclaredText(scheme);
  return text;
}

}  // namespace

std::vector<std::string> ModelLabels(std::span<const std::string> folders) {
  std::vector<std::string> labels;
  for (const std::string& folder : folders) {
    const auto path = std::filesystem::path(folder).lexically_normal();
    labels.push_back(path.has_filename() ? path.filename() : path.parent_path().filename());
  }
  const std::set<std::string> distinct(labels.begin(), labels.end());
  if (distinct.size() < labels.size() || distinct.contains(""))
    return {folders.begin(), folders.end()};
  return labels;
}

ComparedModel DescribeModel(const LoadedModel& loaded, std::string label) {
  ComparedModel model;
  model.folder = loaded.checkpoint().folder().string();
  model.label = std::move(label);
  model.scheme = SchemeText(loaded);
  model.bytes = loaded.checkpoint().total_bytes();
  model.bits_per_weight =
      8.0 * static_cast<double>(model.bytes) / static_cast<double>(ParameterCount(loaded.model()));
  return model;
}

Result<Speed> MeasureSpeed(const Model& model, std::span<const TokenId> tokens,
                           const Context& context) {
  constexpr int64_t kDecodeTokens = 32;
  const auto room =
      static_cast<size_t>(std::max<int64_t>(1, model.spec.max_positions - kDecodeTokens));
  const auto prompt = tokens.first(std::min(room, tokens.size()));
  Speed speed{.prompt_tokens = std::ssize(prompt)};
  OCTAVO_ASSIGN_OR_RETURN(speed.prefill, MeasurePrefill(model, prompt, 0, context));
  OCTAVO_ASSIGN_OR_RETURN(
      speed.decode,
      MeasureDecode(model, prompt, {.sequences = 1, .tokens = kDecodeTokens}, 0, context));
  return speed;
}

Result<Provenance> FindProvenance(const Checkpoint& checkpoint) {
  Provenance provenance;
  for (const SafetensorsFile& file : checkpoint.files()) {
    OCTAVO_ASSIGN_OR_RETURN(std::string hash, Sha256OfFile(file.path()));
    provenance.hashes.emplace_back(file.path().filename(), std::move(hash));
  }
  const auto recipe = checkpoint.folder() / "recipe.yaml";
  if (std::filesystem::exists(recipe)) {
    OCTAVO_ASSIGN_OR_RETURN(provenance.recipe, ReadFile(recipe, int64_t{16} << 20));
    provenance.recipe_source = "recipe.yaml";
  } else if (const Value* config = checkpoint.config().Find("quantization_config")) {
    provenance.recipe = WriteJson(*config, {.indent = 2});
    provenance.recipe_source = "quantization_config";
  }
  return provenance;
}

}  // namespace octavo
