// ActivationObserver: the range of a layer's input over all calibration data, for static scales.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "quant/args.h"
#include "quant/observers/observer.h"
#include "quant/quantize_weight.h"
#include "quant/scheme.h"

namespace octavo {

// Sees the input batch by batch, and gives one scale (and zero point) in the end. args.observer
// says how batches are merged (quantization 4):
//   static_minmax, and null    the extremes of all
//   memoryless_minmax          the range of the latest
//   minmax                     a moving average that begins with the first: v += c (new - v), c =
//                              observer_kwargs.averaging_constant, 0.01
//   memoryless_mse, mse        the latest and the moving average of the ranges that err least
// One batch is what the library sees at once: a sample.
class ActivationObserver {
 public:
  // For static activations of strategy tensor, one head of strategy attn_head, and NVFP4's, of
  // which it finds the global scale; `scale_dtype` is the dtype that the scale is stored in (the
  // model's). Unsupported or NotFound names an observer that is not there, InvalidArgument a bad
  // member of observer_kwargs.
  static Result<ActivationObserver> Make(const QuantizationArgs& args, DType scale_dtype);

  // InvalidArgument when x holds NaN or Inf (the caller names the layer). No rows: nothing happens.
  Status Observe(const Rows& x);

  bool has_seen_data() const { return seen_; }
  float minimum() const { return minimum_; }  // at most 0
  float maximum() const { return maximum_; }  // at least 0

  // The scale, [1], and, where args are asymmetric, the zero point, [1], for Scheme::pack_input.
  // InvalidArgument when no data was seen (the caller names the layer).
  Result<ScaleAndZeroPoint> Scales(Arithmetic arithmetic = Arithmetic::kFloat32) const;

 private:
  enum class Merge : uint8_t { kExtremes, kLatest, kAverage };
  struct Kind;
  ActivationObserver() = default;

  QuantizationArgs args_;
  DType scale_dtype_ = DType::kF32;
  const WeightObserver* range_of_batch_ = nullptr;
  Merge merge_ = Merge::kExtremes;
  float averaging_constant_ = 0.01F;
  bool global_scale_ = false;  // NVFP4's: 448 * 6 / amax
  bool seen_ = false;
  float minimum_ = 0;
  float maximum_ = 0;
};

}  // namespace octavo
