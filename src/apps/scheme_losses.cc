#include "apps/scheme_losses.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "apps/text_windows.h"
#include "base/file.h"
#include "base/json.h"
#include "compress/pipeline.h"
#include "compress/recipe.h"
#include "eval/lockstep.h"

namespace octavo {

namespace {

// A recipe in JSON, which is YAML too.
std::string RecipeOf(const QuantizationScheme& declared) {
  QuantizationScheme linear = declared;
  linear.targets = {"Linear"};
  Value groups = Value::MakeObject();
  groups.Set("group_0", ToValue(linear));
  Value settings = Value::MakeObject();
  settings.Set("ignore", Value::Array{Value("lm_head")});
  settings.Set("config_groups", std::move(groups));
  Value modifiers = Value::MakeObject();
  modifiers.Set("QuantizationModifier", std::move(settings));
  Value stage = Value::MakeObject();
  stage.Set("quant_modifiers", std::move(modifiers));
  Value recipe = Value::MakeObject();
  recipe.Set("quant_stage", std::move(stage));
  return WriteJson(recipe);
}

Result<std::filesystem::path> MakeTemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "octavo-XXXXXX").string();
  if (mkdtemp(pattern.data()) != nullptr) return std::filesystem::path(pattern);
  return IoError(pattern + ": cannot be made: " + std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<SchemeLosses>> SchemeLosses::Open(const std::string& model,
                                                         const std::string& text,
                                                         const Context& context) {
  std::unique_ptr<SchemeLosses> losses(new SchemeLosses());
  losses->model_ = model;
  const TextWindowFlags flags{
      .text = text, .windows = {.window = kWindow, .max_windows = kWindows}, .bos = false};
  OCTAVO_ASSIGN_OR_RETURN(losses->windows_, ReadTextWindows(flags, model));
  OCTAVO_ASSIGN_OR_RETURN(losses->base_, LoadModel(model, {}, context));
  OCTAVO_ASSIGN_OR_RETURN(losses->folder_, MakeTemporaryFolder());
  OCTAVO_RETURN_IF_ERROR(losses->WriteCalibration());
  return losses;
}

SchemeLosses::~SchemeLosses() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Status SchemeLosses::WriteCalibration() const {
  std::string lines;
  for (const Window& window : windows_) {
    Value row = Value::MakeObject();
    row.Set("input_ids", Value::Array(window.tokens.begin(), window.tokens.end()));
    lines += WriteJson(row) + "\n";
  }
  return WriteFileAtomically(folder_ / "calibration.jsonl", lines);
}

Result<SchemeLoss> SchemeLosses::Measure(const QuantizationScheme& declared,
                                         const Context& caller) const {
  // What each run says of its layers would bury the table.
  const Context context{.pool = caller.pool,
                        .isa = caller.isa,
                        .progress = caller.progress,
                        .cancelled = caller.cancelled};
  const Model* model = &base_->model();
  std::unique_ptr<LoadedModel> quantized;
  const std::filesystem::path out = folder_ / "model";
  if (declared.weights) {
    QuantizeOptions options;
    options.model = model_;
    options.out = out;
    options.calibration = folder_ / "calibration.jsonl";
    options.dataset = {.num_samples = kWindows, .max_length = kWindow, .shuffle = false};
    options.force = options.restart = true;
    OCTAVO_ASSIGN_OR_RETURN(const Recipe recipe,
                            ParseRecipe(RecipeOf(declared), "recipe", context.log));
    OCTAVO_RETURN_IF_ERROR(Quantize(options, recipe, context).status());
    OCTAVO_ASSIGN_OR_RETURN(quantized, LoadModel(out, {}, context));
    model = &quantized->model();
  }
  const NamedModel models[] = {{out.string(), *model}};
  OCTAVO_ASSIGN_OR_RETURN(const LockstepResult read,
                          Lockstep({model_, base_->model()}, models, windows_, context));
  const auto& [quality, divergence] = read.models.front();
  return SchemeLoss{.perplexity = quality.perplexity.mean,
                    .kl = divergence.kl.mean.mean,
                    .same_top1 = divergence.same_top1};
}

}  // namespace octavo
