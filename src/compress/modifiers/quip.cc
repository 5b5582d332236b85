// QuIPModifier: every input (v), or output (u), of the layers it targets is rotated while the model
// runs, and back in their weights (quantization 5.7). It only transforms; a quantizing modifier
// must follow.
#include "compress/modifier.h"
#include "compress/modifiers/quantization_settings.h"
#include "compress/modifiers/transform_settings.h"

namespace octavo {

namespace {

class QuipModifier : public Modifier {
 public:
  QuipModifier(TransformSettings settings, std::vector<std::string> targets,
               std::vector<std::string> ignore, Value saved)
      : settings_(std::move(settings)),
        targets_(std::move(targets)),
        ignore_(std::move(ignore)),
        saved_(std::move(saved)) {}

  std::string_view class_name() const override { return "QuIPModifier"; }
  Value settings() const override { return saved_; }

  Result<std::optional<ModelTransforms>> Transforms(const Model&) const override {
    ModelTransforms transforms{.uses = {}, .folds_norms = false, .seed = settings_.seed};
    OCTAVO_ASSIGN_OR_RETURN(transforms.uses,
                            settings_.transform_config.is_object()
                                ? ParseTransforms(settings_.transform_config, "transform_config")
                                : Uses());
    return std::optional(std::move(transforms));
  }

  Status Check(const Model&, Logger&) const override { return OkStatus(); }
  Status Apply(BlockWork*, const Context&) const override { return OkStatus(); }

 private:
  // y = (x V) (U^T W V)^T U^T.
  Result<std::vector<TransformUse>> Uses() const {
    using enum TransformLocation;
    std::vector<TransformUse> uses;
    const auto add = [&](std::string_view rotation, TransformLocation location,
                         bool inverse) -> Status {
      if (!settings_.Has(rotation)) return OkStatus();
      OCTAVO_ASSIGN_OR_RETURN(TransformUse use,
                              settings_.Use(rotation, location, inverse, targets_, ignore_));
      uses.push_back(std::move(use));
      return OkStatus();
    };
    OCTAVO_RETURN_IF_ERROR(add("v", kInput, false));
    OCTAVO_RETURN_IF_ERROR(add("v", kWeightInput, true));
    OCTAVO_RETURN_IF_ERROR(add("u", kWeightOutput, false));
    OCTAVO_RETURN_IF_ERROR(add("u", kOutput, true));
    return uses;
  }

  TransformSettings settings_;
  std::vector<std::string> targets_;
  std::vector<std::string> ignore_;
  Value saved_;
};

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  std::vector<std::string> keys = TransformKeys();
  keys.insert(keys.end(), {"targets", "ignore"});
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(settings, where, keys));
  OCTAVO_ASSIGN_OR_RETURN(
      TransformSettings parsed,
      ParseTransformSettings(
          object,
          {.known_rotations = {"v", "u"}, .rotations = {"v"}, .transform_type = "random-hadamard"},
          log));
  if (parsed.Has("u") && parsed.type == TransformType::kRandomMatrix)
    return Unsupported(object.Path("rotations") +
                       ": u needs the inverse of its matrix while the model runs, which "
                       "random-matrix does not have there; choose hadamard or random-hadamard");
  OCTAVO_ASSIGN_OR_RETURN(std::vector<std::string> targets, object.Strings("targets", {"Linear"}));
  OCTAVO_ASSIGN_OR_RETURN(std::vector<std::string> ignore, object.Strings("ignore", {"lm_head"}));
  Value saved = parsed.Saved();
  const Value* given_targets = object.Find("targets");
  const Value* given_ignore = object.Find("ignore");
  saved.Set("targets", given_targets == nullptr ? Value("Linear") : *given_targets);
  saved.Set("ignore", given_ignore == nullptr ? Value("lm_head") : *given_ignore);
  return std::unique_ptr<Modifier>(std::make_unique<QuipModifier>(
      std::move(parsed), std::move(targets), std::move(ignore), std::move(saved)));
}

}  // namespace

extern const ModifierClass kQuipModifier;
const ModifierClass kQuipModifier = {"QuIPModifier", Parse};

}  // namespace octavo
