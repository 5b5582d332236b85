#include "compress/static_outputs.h"

#include <map>
#include <vector>

#include "compress/block_io.h"
#include "kernels/matmul_float/matmul_float.h"
#include "quant/observers/activation_observer.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

bool IsStatic(const QuantizationScheme& scheme) {
  return scheme.weights && scheme.output_activations &&
         scheme.output_activations->dynamic == Dynamic::kFalse;
}

// One layer whose outputs are computed and observed.
class OutputObserver {
 public:
  static Result<OutputObserver> Make(const LayerWork& work, const LoadedModel& source) {
    const LinearLayer& layer = *work.layer;
    OCTAVO_ASSIGN_OR_RETURN(
        ActivationObserver observer,
        ActivationObserver::Make(*layer.quantization.output_activations, layer.model_dtype));
    OutputObserver made(std::move(observer),
                        Dequantize(*layer.quantization.weights, *work.quantized));
    const std::string bias = layer.name + ".bias";
    if (!source.checkpoint().Contains(bias)) return made;
    OCTAVO_ASSIGN_OR_RETURN(const TensorView stored, source.checkpoint().Find(bias));
    OCTAVO_ASSIGN_OR_RETURN(made.bias_, ToFloatTensor(stored));
    return made;
  }

  Status Observe(const Rows& x, std::span<const int32_t> sequence, const Context& context) {
    const int64_t n = weight_.dim(0);
    std::vector<float> y(static_cast<size_t>(x.m * n));
    const auto bias = bias_.empty() ? std::span<const float>() : bias_.data<float>();
    MultiplyFloat(weight_.view(), bias, x.data, x.stride, x.m, y.data(), n, context.isa,
                  context.pool);
    return ForEachSample({y.data(), x.m, n, n}, sequence,
                         [&](const Rows& sample) { return observer_.Observe(sample); });
  }

  Result<ScaleAndZeroPoint> Scales() const { return observer_.Scales(); }

 private:
  OutputObserver(ActivationObserver observer, Tensor weight)
      : observer_(std::move(observer)), weight_(std::move(weight)) {}

  ActivationObserver observer_;
  Tensor weight_;  // F32 [n, k]
  Tensor bias_;    // F32 [n] or empty
};

}  // namespace

StatisticsNeeds StaticOutputNeeds(const QuantizationScheme& scheme) {
  return {.input_samples = IsStatic(scheme)};
}

Status SetStaticOutputs(BlockWork* work, const LoadedModel& source, const Calibration& calibration,
                        const ObservingPass& pass, const Context& context) {
  std::map<LayerWork*, OutputObserver> observers;
  for (GroupWork& group : work->groups) {
    for (LayerWork& layer : group.layers) {
      if (!layer.quantized || !IsStatic(layer.layer->quantization)) continue;
      auto observer = OutputObserver::Make(layer, source);
      if (!observer.ok()) return observer.status().Annotate(layer.layer->name);
      observers.emplace(&layer, *std::move(observer));
    }
  }
  if (observers.empty()) return OkStatus();

  Status status;
  std::vector<float> divided;
  OCTAVO_RETURN_IF_ERROR(pass([&](const LinearGroup& linear, const Rows& input) {
    GroupWork* group = FindGroup(work, linear);
    if (group == nullptr) return;
    const Rows x = group->statistics.AsDivided(input, &divided);
    for (LayerWork& layer : group->layers) {
      const auto found = observers.find(&layer);
      if (found == observers.end() || !status.ok()) continue;
      status = found->second.Observe(x, calibration.running_batch().sequence, context)
                   .Annotate(layer.layer->name);
    }
  }));
  OCTAVO_RETURN_IF_ERROR(status);
  for (auto& [layer, observer] : observers) {
    auto scales = observer.Scales();
    if (!scales.ok()) return scales.status().Annotate(layer->layer->name);
    layer->output = *std::move(scales);
  }
  return OkStatus();
}

}  // namespace octavo
