// What several schemes need: the bias of stacked layers, and the wording of differences.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "quant/scheme.h"

namespace octavo {

// The bias as it is stored: [n] in a float dtype, optional where the layer's architecture has none.
DeclaredTensor DeclareBias(const LinearLayer& layer);

// weight_scale as the naive and packed formats store it: in the model's dtype, shaped as the grid
// of the weight's strategy.
DeclaredTensor DeclareWeightScale(const LinearLayer& layer);

// weight_scale of MX schemes: U8 (E8M0) [n, k / 32]; and float32 powers of two as such bytes.
DeclaredTensor DeclareMxScale(const LinearLayer& layer);
Tensor PackMxScales(const Tensor& scale);

// Scales as float32, shaped as the weight's grid. InvalidArgument when one is NaN or Inf.
Result<Tensor> ScalesAsFloat(const LinearLayer& layer, const TensorView& scales);

// The biases of stacked layers as float32 [sum of n], zeros where a layer has none; empty when none
// has one.
Result<std::vector<float>> StackBiases(std::span<const LinearLayer> layers,
                                       std::span<const LayerViews> tensors);

// The sum of n over stacked layers.
int64_t StackedRows(std::span<const LinearLayer> layers);

// Appends "what: is found, not expected" when the two differ.
void AddDifference(std::string_view what, std::string_view found, std::string_view expected,
                   std::vector<std::string>* differences);

}  // namespace octavo
