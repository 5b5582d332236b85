// What several schemes need: the bias of stacked layers, and the wording of differences.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "quant/scheme.h"

namespace octavo {

// The bias as it is stored: [n] in a float dtype, optional where the layer's architecture has none.
DeclaredTensor DeclareBias(const LinearLayer& layer);

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
