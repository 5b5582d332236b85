// One decoder block while it is being quantized: float weights, what calibration saw, and what the
// modifiers decided.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/graph.h"
#include "quant/quantize_weight.h"
#include "tensor/tensor.h"

namespace octavo {

// What a modifier wants to know of the inputs of linear layers.
struct StatisticsNeeds {
  bool channel_range = false;  // smallest and largest value of each input channel
  bool hessian = false;        // sum over tokens of 2 x^T x
};

// Of the input that a group of layers shares, over all calibration tokens.
struct InputStatistics {
  int64_t tokens = 0;
  std::vector<float> minimum, maximum;  // [k]; empty when not asked for
  Tensor hessian;                       // F32 [k, k]; empty when not asked for

  void Add(const Rows& x, const StatisticsNeeds& needs, const Context& context);
  // The statistics of x / s, from those of x: smoothing divides the input, no second pass is
  // needed.
  void DivideInput(std::span<const float> s);
};

// One linear layer.
struct LayerWork {
  const LinearLayer* layer =
      nullptr;    // of the target graph: its `quantization` is what the recipe asks for
  Tensor weight;  // F32 [n, k], as changed so far
  std::optional<QuantizedWeight> quantized;

  // For the report: squared output error ||X (W - Wq)^T||^2 and of the output itself, where a
  // Hessian is known.
  double error_to_nearest = 0;  // of rounding to nearest
  double error = 0;             // of what was chosen
  double output_energy = 0;
  std::string method;  // "rtn", "gptq"
  std::string note;    // what was out of the ordinary: raised damping, a fallback
};

// A norm whose output is the input of a group, [k] float32, as changed so far; stored in the
// model's dtype.
struct NormWork {
  std::string name;
  Tensor weight;
};

// Layers that share an input, and the norm that makes it (null for o_proj and down_proj).
struct GroupWork {
  const LinearGroup* source = nullptr;  // of the source graph
  std::vector<LayerWork> layers;
  NormWork* norm = nullptr;
  InputStatistics statistics;
};

struct BlockWork {
  int64_t index = 0;
  std::string name;
  NormWork attention_norm, mlp_norm;
  std::vector<GroupWork> groups;  // in the order of Block::groups()
};

}  // namespace octavo
