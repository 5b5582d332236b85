// QuantizationModifier: every targeted weight rounded to nearest (quantization 5.1).
#include "compress/modifier.h"
#include "compress/modifiers/quantization_settings.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

class QuantizationModifier : public Modifier {
 public:
  QuantizationModifier(QuantizationConfig config, Value saved)
      : config_(std::move(config)), saved_(std::move(saved)) {}

  std::string_view class_name() const override { return "QuantizationModifier"; }
  Value settings() const override { return saved_; }
  const QuantizationConfig* quantization() const override { return &config_; }
  Status Check(const Model&, Logger&) const override { return OkStatus(); }

  Status Apply(BlockWork* block, const Context& context) const override {
    for (GroupWork& group : block->groups) {
      const GroupFacts facts(group);
      for (LayerWork& layer : group.layers) {
        if (layer.owner != this) continue;
        OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
        const LinearLayer& linear = *layer.layer;
        Result<QuantizedWeight> quantized = QuantizeToNearest(
            *linear.quantization.weights, layer.weight.data<float>(), linear.n, linear.k,
            linear.model_dtype, Arithmetic::kFloat32, facts.OfEachLayer());
        if (!quantized.ok()) return quantized.status().Annotate(linear.name);
        layer.quantized = *std::move(quantized);
        layer.method = "rtn";
      }
    }
    return OkStatus();
  }

 private:
  QuantizationConfig config_;
  Value saved_;
};

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object,
                          StrictObject::Make(settings, where, QuantizationKeys()));
  OCTAVO_ASSIGN_OR_RETURN(QuantizationConfig config, ParseQuantizationFields(object, log));
  Value saved = SavedQuantizationFields(settings, RequiresCalibration(config));
  return std::unique_ptr<Modifier>(
      std::make_unique<QuantizationModifier>(std::move(config), std::move(saved)));
}

}  // namespace

extern const ModifierClass kQuantizationModifier;
const ModifierClass kQuantizationModifier = {"QuantizationModifier", Parse};

}  // namespace octavo
