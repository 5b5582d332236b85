#include "compress/measure_bits.h"

#include <fmt/format.h>

#include <algorithm>

#include "compress/calibration_data.h"
#include "compress/pipeline.h"

namespace octavo {

namespace {

constexpr SensitivityOptions kProbe = {.tokens = 1024, .positions = 512};
// As quantize reads what it quantizes.
const LoadOptions kOriginal = {.prepare = {}, .load_blocks = true, .dequantize = true};

// Of each sample.
constexpr size_t kProbeLength = 128;

// Scales of a whole tensor and shapes are left out of what a weight takes.
constexpr int64_t kFewElements = 2;

// Gone when the object is, whatever happened.
class FolderOfCandidates {
 public:
  explicit FolderOfCandidates(const std::filesystem::path& out)
      : path_(out.string() + ".candidates") {}
  ~FolderOfCandidates() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FolderOfCandidates(const FolderOfCandidates&) = delete;
  FolderOfCandidates& operator=(const FolderOfCandidates&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

bool HasFewBits(const QuantizationScheme& scheme) {
  return scheme.weights && scheme.weights->type == QuantizationType::kInt &&
         scheme.weights->num_bits <= 4;
}

Result<Recipe> RecipeOf(const std::string& candidate, const RecipeFlags& asked, Logger& log) {
  auto preset = PresetScheme(candidate, {"Linear"});
  if (!preset.ok()) return preset.status().Annotate("--candidates");
  QuantizationScheme scheme = *std::move(preset);
  if (!scheme.weights) {
    return InvalidArgument(
        fmt::format("--candidates: {} quantizes nothing; leave it out", candidate));
  }
  const bool few = HasFewBits(scheme);
  if (few && asked.awq) scheme.weights->observer = "imatrix_mse";
  RecipeFlags flags = asked;
  flags.schemes = {{candidate, std::move(scheme)}};
  flags.gptq = asked.gptq && few;
  flags.awq = false;
  flags.kv_cache.reset();
  return MakeRecipe(flags, log);
}

int64_t StoredBits(const LoadedModel& model, const LinearLayer& layer) {
  int64_t bytes = 0;
  for (const auto& [suffix, view] : model.TensorsOf(layer)) {
    if (suffix != "bias" && view.elements() > kFewElements) bytes += view.num_bytes();
  }
  return 8 * bytes;
}

// The base's own replacement by `model`, for every unit of the table.
struct UnitPlace {
  int64_t block = 0;
  size_t group = 0;
};

Result<UnitPlace> FindUnit(const Model& model, const BitTable::Unit& unit) {
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    const auto groups = model.blocks[b].groups();
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups[g]->layers.front().name == unit.layers.front())
        return UnitPlace{static_cast<int64_t>(b), g};
    }
  }
  return NotFound(fmt::format("the model has no layer {}", unit.layers.front()));
}

}  // namespace

std::vector<Window> ProbeWindows(const std::vector<std::vector<TokenId>>& samples) {
  std::vector<Window> windows;
  windows.reserve(samples.size());
  for (const std::vector<TokenId>& sample : samples) {
    const auto length = static_cast<std::ptrdiff_t>(std::min(sample.size(), kProbeLength));
    windows.push_back({.tokens = {sample.begin(), sample.begin() + length}});
  }
  return windows;
}

Result<std::unique_ptr<CandidateModels>> CandidateModels::Make(
    const std::vector<std::string>& candidates, const RecipeFlags& flags,
    const QuantizeOptions& options, const Context& context) {
  // What each run says of its layers would bury what is asked for.
  const Context silent{.pool = context.pool,
                       .isa = context.isa,
                       .progress = context.progress,
                       .cancelled = context.cancelled};
  std::unique_ptr<CandidateModels> made(new CandidateModels());
  made->names_ = candidates;
  made->group_size_ = flags.group_size.value_or(0);
  made->method_ = flags.gptq ? "gptq" : flags.awq ? "rtn, scales searched for" : "rtn";
  std::vector<Recipe> recipes;
  for (const std::string& candidate : candidates) {
    OCTAVO_ASSIGN_OR_RETURN(Recipe recipe, RecipeOf(candidate, flags, silent.log));
    recipes.push_back(std::move(recipe));
  }
  OCTAVO_ASSIGN_OR_RETURN(const Dataset dataset, ReadSamples(options));
  made->windows_ = ProbeWindows(dataset.samples);
  const FolderOfCandidates folder(options.out);
  QuantizeOptions one = options;
  one.propagate = Propagate::kNone;
  one.force = one.restart = true;
  one.dry_run = false;
  for (size_t i = 0; i < candidates.size(); ++i) {
    context.log.Info(
        fmt::format("candidate {} of {}: {}", i + 1, candidates.size(), candidates[i]));
    one.out = folder.path() / fmt::format("{}", i);
    OCTAVO_RETURN_IF_ERROR(Quantize(one, recipes[i], silent).status().Annotate(candidates[i]));
    OCTAVO_ASSIGN_OR_RETURN(auto loaded, LoadModel(one.out, {}, silent));
    made->models_.push_back(std::move(loaded));
  }
  OCTAVO_ASSIGN_OR_RETURN(made->base_, LoadModel(options.model, kOriginal, silent));
  return made;
}

Result<BitTable> CandidateModels::Measure(const Context& context) {
  std::vector<LoadedModel*> models;
  models.reserve(models_.size());
  for (const auto& model : models_) models.push_back(model.get());
  OCTAVO_ASSIGN_OR_RETURN(const auto found,
                          MeasureSensitivities(base_.get(), models, windows_, kProbe, context));
  BitTable table{.candidates = names_, .group_size = group_size_, .method = method_, .units = {}};
  for (size_t u = 0; u < found.front().size(); ++u) {
    const LayerUnit& unit = found.front()[u].unit;
    BitTable::Unit& row = table.units.emplace_back();
    row.layers = unit.layers;
    for (size_t m = 0; m < models.size(); ++m) {
      if (u >= found[m].size() || found[m][u].unit.layers != unit.layers) {
        return Unsupported(fmt::format(
            "{} and {} do not quantize the same units of layers; choose between them without "
            "smoothing",
            names_.front(), names_[m]));
      }
      BitOption& option = row.options.emplace_back();
      option.kl = found[m][u].kl;
      const Block& block = models[m]->model().blocks[static_cast<size_t>(unit.block)];
      for (const size_t g : unit.groups) {
        for (const LinearLayer& layer : block.groups()[g]->layers) {
          option.bits += StoredBits(*models[m], layer);
          if (m == 0) row.weights += layer.n * layer.k;
        }
      }
    }
  }
  return table;
}

Result<double> CandidateModels::Divergence(const BitTable& table, const BitChoice& choice,
                                           const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const auto probe,
                          SensitivityProbe::Make(base_.get(), windows_, kProbe, context));
  std::vector<Replacement> replacements;
  for (size_t u = 0; u < table.units.size(); ++u) {
    OCTAVO_ASSIGN_OR_RETURN(const UnitPlace place, FindUnit(base_->model(), table.units[u]));
    replacements.push_back({models_[choice.options[u]].get(), place.block, place.group});
  }
  return probe->Divergence(replacements);
}

Result<double> MeasureOutput(const QuantizeOptions& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const Dataset dataset, ReadSamples(options));
  OCTAVO_ASSIGN_OR_RETURN(const auto base, LoadModel(options.model, kOriginal, context));
  OCTAVO_ASSIGN_OR_RETURN(const auto model, LoadModel(options.out, {}, context));
  OCTAVO_ASSIGN_OR_RETURN(
      const auto probe,
      SensitivityProbe::Make(base.get(), ProbeWindows(dataset.samples), kProbe, context));
  std::vector<Replacement> all;
  for (int64_t b = 0; b < base->model().spec.num_layers; ++b) {
    for (size_t g = 0; g < base->model().blocks.front().groups().size(); ++g)
      all.push_back({model.get(), b, g});
  }
  return probe->Divergence(all);
}

}  // namespace octavo
