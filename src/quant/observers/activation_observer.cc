#include "quant/observers/activation_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "tensor/convert.h"

namespace octavo {

// How an observer's name says to find the range of a batch and to merge it.
struct ActivationObserver::Kind {
  std::string_view name;
  std::string_view range_of_batch;
  Merge merge;
};

Result<ActivationObserver> ActivationObserver::Make(const QuantizationArgs& args,
                                                    DType scale_dtype) {
  static constexpr Kind kKinds[] = {
      {"static_minmax", "memoryless_minmax", Merge::kExtremes},
      {"memoryless_minmax", "memoryless_minmax", Merge::kLatest},
      {"minmax", "memoryless_minmax", Merge::kAverage},
      {"memoryless_mse", "memoryless_mse", Merge::kLatest},
      {"mse", "memoryless_mse", Merge::kAverage},
  };
  const bool one_scale = args.dynamic == Dynamic::kFalse && (args.strategy == Strategy::kTensor ||
                                                             args.strategy == Strategy::kAttnHead);
  const bool global_scale = args.dynamic == Dynamic::kLocal && HasGlobalScale(args);
  if (!one_scale && !global_scale) {
    return Unsupported(fmt::format(
        "activations of [{}] cannot be calibrated, only static ones with one scale a tensor, and "
        "NVFP4's",
        args.ToString()));
  }
  const std::string name = ObserverName(args.observer.value_or("static_minmax"));
  std::vector<std::string> here;
  for (const Kind& kind : kKinds) here.emplace_back(kind.name);
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& candidate) { return candidate.name == name; });
  if (kind == std::end(kKinds)) return UnknownObserver(name, here).Annotate("activations");

  ActivationObserver observer;
  observer.args_ = args;
  observer.args_.observer = kind->range_of_batch;
  observer.args_.strategy = Strategy::kTensor;  // groups find theirs when the model runs
  observer.global_scale_ = global_scale;
  observer.scale_dtype_ = scale_dtype;
  observer.merge_ = kind->merge;
  OCTAVO_ASSIGN_OR_RETURN(observer.range_of_batch_, FindWeightObserver(observer.args_));
  OCTAVO_ASSIGN_OR_RETURN(const double constant,
                          args.observer_kwargs.GetDouble("averaging_constant", 0.01));
  if (!(constant > 0 && constant <= 1)) {
    return InvalidArgument(fmt::format(
        "observer_kwargs.averaging_constant is {}, expected more than 0 and at most 1", constant));
  }
  observer.averaging_constant_ = static_cast<float>(constant);
  return observer;
}

Status ActivationObserver::Observe(const Rows& x) {
  if (x.m == 0) return OkStatus();
  std::vector<float> copy;
  for (int64_t row = 0; x.stride != x.k && row < x.m; ++row) {
    const float* from = x.data + row * x.stride;
    copy.insert(copy.end(), from, from + x.k);
  }
  const std::span<const float> values(copy.empty() ? x.data : copy.data(),
                                      static_cast<size_t>(x.m * x.k));
  if (!AllFinite(values)) return InvalidArgument("the input of the layer holds NaN or Inf");
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid, MakeScaleGrid(args_, x.m, x.k));
  OCTAVO_ASSIGN_OR_RETURN(const WeightRanges ranges,
                          range_of_batch_->observe(args_, grid, values, scale_dtype_, {}));
  const float minimum = ranges.minima[0];
  const float maximum = ranges.maxima[0];
  if (!seen_ || merge_ == Merge::kLatest) {
    minimum_ = minimum;
    maximum_ = maximum;
  } else if (merge_ == Merge::kExtremes) {
    minimum_ = std::min(minimum_, minimum);
    maximum_ = std::max(maximum_, maximum);
  } else {
    minimum_ += averaging_constant_ * (minimum - minimum_);
    maximum_ += averaging_constant_ * (maximum - maximum_);
  }
  seen_ = true;
  return OkStatus();
}

Result<ScaleAndZeroPoint> ActivationObserver::Scales(Arithmetic arithmetic) const {
  if (!seen_) {
    return InvalidArgument(
        "no calibration data reached the layer, so its input has no static scale; ignore the "
        "layer, "
        "or calibrate with data that uses it");
  }
  if (global_scale_) {
    const float scale = GlobalScale(std::max(-minimum_, maximum_), DType::kF32);
    ScaleAndZeroPoint global;
    OCTAVO_ASSIGN_OR_RETURN(global.scale, FromFloat({&scale, 1}, DType::kF32, {1}));
    return global;
  }
  return ComputeScales(args_, {&minimum_, 1}, {&maximum_, 1}, {1}, scale_dtype_, arithmetic);
}

}  // namespace octavo
