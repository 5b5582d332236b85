// One decoder block while it is being quantized: float weights, what calibration saw, and what the
// modifiers decided.
#pragma once

#include <cstdint>
#include <memory>
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
  bool channel_range = false;   // smallest and largest value of each input channel
  bool hessian = false;         // sum over tokens of 2 x^T x
  bool mean_square = false;     // of each input channel
  bool mean_magnitude = false;  // likewise
  // The samples one by one, as the modifiers leave the input: takes a pass of its own.
  bool input_samples = false;

  // All false: no calibration data is needed.
  bool any() const {
    return channel_range || hessian || mean_square || mean_magnitude || input_samples;
  }
  StatisticsNeeds& operator|=(const StatisticsNeeds& other) {
    channel_range |= other.channel_range;
    hessian |= other.hessian;
    mean_square |= other.mean_square;
    mean_magnitude |= other.mean_magnitude;
    input_samples |= other.input_samples;
    return *this;
  }
};

// Of the input that a group of layers shares, over all calibration tokens.
struct InputStatistics {
  int64_t tokens = 0;
  std::vector<float> minimum, maximum;    // [k]; empty when not asked for
  Tensor hessian;                         // F32 [k, k]; empty when not asked for
  std::vector<double> sum_of_squares;     // [k]; empty when not asked for
  std::vector<double> sum_of_magnitudes;  // likewise
  std::vector<float> divisor;             // [k], what DivideInput divided by so far; empty: nothing

  void Add(const Rows& x, const StatisticsNeeds& needs, const Context& context);
  // After the last Add, before anything is read: the Hessian is added up as one triangle.
  void Finish(const Context& context);
  // The statistics of x / s, from those of x: smoothing divides the input, no second pass is
  // needed.
  void DivideInput(std::span<const float> s);
  // Rows of the input as they are now: divided by `divisor`, in `buffer` where there is one.
  Rows AsDivided(const Rows& x, std::vector<float>* buffer) const;
};

class Modifier;

// One linear layer.
struct LayerWork {
  const LinearLayer* layer = nullptr;  // of the target graph: `quantization` is what is asked for
  const Modifier* owner = nullptr;     // who quantizes it; null: nobody
  Tensor weight;                       // F32 [n, k], as changed so far
  bool changed = false;                // by a transform; an unchanged one is stored as it was
  std::optional<QuantizedWeight> quantized;
  std::optional<ScaleAndZeroPoint> input;   // [1] each, where the input's quantization is static
  std::optional<ScaleAndZeroPoint> output;  // likewise of the output

  // For the report.
  std::string method;  // "rtn", "gptq"
  std::string note;    // what was out of the ordinary: raised damping, a fallback
};

// A norm whose output is the input of a group, [k] float32 as stored, as changed so far.
struct NormWork {
  std::string name;
  float less = 0;              // values are multiplied by the weight plus this (norm_adds_one)
  DType dtype = DType::kBF16;  // that it is stored in
  Tensor weight;
  bool changed = false;
};

// Layers that share an input, and the norm that makes it (null for o_proj and down_proj).
struct GroupWork {
  const LinearGroup* source = nullptr;  // of the source graph
  std::vector<LayerWork> layers;
  std::shared_ptr<NormWork> norm;
  InputStatistics statistics;
};

// What quantizing a layer of the group takes beside its weight (LayerFacts), and its owner.
class GroupFacts {
 public:
  explicit GroupFacts(const GroupWork& group);
  LayerFacts OfEachLayer() const { return {shared_amax_, mean_square_}; }

 private:
  float shared_amax_ = 0;
  std::vector<float> mean_square_;
};

struct BlockWork {
  int64_t index = 0;  // -1: the output head or the embedding, as a block of one layer
  std::string name;
  std::vector<GroupWork> groups;  // in the order of Block::groups()
};

}  // namespace octavo
