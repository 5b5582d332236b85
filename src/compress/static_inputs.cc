#include "compress/static_inputs.h"

#include <map>
#include <span>
#include <vector>

#include "compress/block_io.h"
#include "quant/observers/activation_observer.h"

namespace octavo {

namespace {

// Whether calibration finds a scale of the input: that of all values, or the global one of NVFP4,
// whose groups get theirs when the model runs.
bool IsStatic(const QuantizationScheme& scheme) {
  return scheme.weights && scheme.input_activations &&
         scheme.input_activations->dynamic != Dynamic::kTrue;
}

// What counts is the smallest and the largest value of all data: it need not be seen in samples.
bool TakesExtremes(const QuantizationArgs& input) {
  return ObserverName(input.observer.value_or("static_minmax")) == "static_minmax";
}

// The layer of a group that stands for all in questions of its input; null where none is static.
// Layers that share an input have the same scheme, or none (plan.h).
const LinearLayer* StaticLayer(const GroupWork& group) {
  for (const LayerWork& layer : group.layers) {
    if (IsStatic(layer.layer->quantization)) return layer.layer;
  }
  return nullptr;
}

Result<ActivationObserver> MakeObserver(const LinearLayer& layer) {
  auto observer =
      ActivationObserver::Make(*layer.quantization.input_activations, layer.model_dtype);
  if (!observer.ok()) return observer.status().Annotate(layer.name);
  return observer;
}

// The smallest and the largest value of each channel hold those of the whole input.
Status ObserveExtremes(const InputStatistics& statistics, ActivationObserver* observer) {
  for (const std::vector<float>* values : {&statistics.minimum, &statistics.maximum}) {
    const auto k = std::ssize(*values);
    if (k == 0) continue;
    OCTAVO_RETURN_IF_ERROR(observer->Observe({values->data(), 1, k, k}));
  }
  return OkStatus();
}

// One group that is observed sample by sample.
class SampleObserver {
 public:
  SampleObserver(const GroupWork& group, ActivationObserver observer)
      : group_(group), observer_(std::move(observer)) {}

  // The rows of one sample.
  Status Observe(const Rows& x) {
    std::vector<float> divided;
    return observer_.Observe(group_.statistics.AsDivided(x, &divided));
  }

  const ActivationObserver& observer() const { return observer_; }

 private:
  const GroupWork& group_;
  ActivationObserver observer_;
};

Status SetInput(const ActivationObserver& observer, const LinearLayer& layer, GroupWork* group) {
  for (LayerWork& work : group->layers) {
    if (!IsStatic(work.layer->quantization)) continue;
    auto scales = observer.Scales();
    if (!scales.ok()) return scales.status().Annotate(layer.name);
    work.input = *std::move(scales);
  }
  return OkStatus();
}

}  // namespace

StatisticsNeeds StaticInputNeeds(const QuantizationScheme& scheme) {
  if (!IsStatic(scheme)) return {};
  const bool extremes = TakesExtremes(*scheme.input_activations);
  return {.channel_range = extremes, .hessian = false, .input_samples = !extremes};
}

Status SetStaticInputs(BlockWork* work, const Calibration& calibration, const ObservingPass& pass) {
  std::map<GroupWork*, SampleObserver> sampled;
  for (GroupWork& group : work->groups) {
    const LinearLayer* layer = StaticLayer(group);
    if (layer == nullptr) continue;
    OCTAVO_ASSIGN_OR_RETURN(ActivationObserver observer, MakeObserver(*layer));
    if (!TakesExtremes(*layer->quantization.input_activations)) {
      sampled.emplace(&group, SampleObserver(group, std::move(observer)));
      continue;
    }
    OCTAVO_RETURN_IF_ERROR(ObserveExtremes(group.statistics, &observer).Annotate(layer->name));
    OCTAVO_RETURN_IF_ERROR(SetInput(observer, *layer, &group));
  }
  if (sampled.empty()) return OkStatus();

  Status status;
  OCTAVO_RETURN_IF_ERROR(pass([&](const LinearGroup& linear, const Rows& input) {
    const auto found = sampled.find(FindGroup(work, linear));
    if (found == sampled.end() || !status.ok()) return;
    status = ForEachSample(input, calibration.running_batch().sequence,
                           [&](const Rows& sample) { return found->second.Observe(sample); });
    if (!status.ok()) status = status.Annotate(StaticLayer(*found->first)->name);
  }));
  OCTAVO_RETURN_IF_ERROR(status);
  for (auto& [group, observer] : sampled) {
    OCTAVO_RETURN_IF_ERROR(SetInput(observer.observer(), *StaticLayer(*group), group));
  }
  return OkStatus();
}

}  // namespace octavo
