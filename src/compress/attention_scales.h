// Scales of keys, values and queries, found on what a block computes over the calibration data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/forward.h"
#include "octavo/quantize.h"
#include "quant/observers/activation_observer.h"
#include "quant/scheme.h"

namespace octavo {

// The tensors that quantized attention adds to the output, of one block; none where nothing is
// declared.
std::vector<DeclaredTensor> DeclareAttentionScales(const Block& block, const ModelSpec& spec);

// Queries, keys or values of one module: its observer, or one for each head.
class HeadsObserver {
 public:
  // `args` is one that nothing keeps attention from (WhyUnsupportedForAttention).
  static Result<HeadsObserver> Make(const QuantizationArgs& args, int64_t heads, DType scale_dtype);

  // Rows [m, heads * head_dim] of one sample.
  Status Observe(const Rows& x);

  // [1] or [heads], as the stored dtype rounds them.
  Result<std::vector<float>> Scales() const;

  // Of the rows seen first, some thousand: the squared error that rounding by these scales makes,
  // as a share of their energy.
  double Error(std::span<const float> scales) const;

 private:
  DType codes_ = DType::kI8;
  int64_t heads_ = 0;
  std::vector<ActivationObserver> observers_;  // 1 or heads_
  std::vector<float> first_rows_;              // [rows, width_]
  int64_t width_ = 0;
};

// All that one block needs.
class AttentionObserver {
 public:
  // Unsupported or NotFound names an observer that is not there.
  static Result<AttentionObserver> Make(const Block& block, const ModelSpec& spec);

  // Rows of a pass; `sequence` tells the samples apart. Errors name the module.
  Status Observe(const AttentionRows& rows, std::span<const int32_t> sequence);

  // After the last rows. InvalidArgument names a module that saw none.
  Result<AttentionReport> Report() const;

 private:
  explicit AttentionObserver(std::string module) : module_(std::move(module)) {}

  std::string module_;
  std::vector<HeadsObserver>
      observers_;  // of keys, of values and, where they are declared, queries
};

// The tensors that the report's scales are on disk, each with its suffix.
Result<LayerTensors> PackAttentionScales(const AttentionReport& report, const Block& block,
                                         const ModelSpec& spec);

// Lets the block round as the report's scales say, when it runs.
void UseAttentionScales(const AttentionReport& report, const ModelSpec& spec, Block* block);

}  // namespace octavo
