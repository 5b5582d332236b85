// Integer weights with inputs down the rows, as AutoGPTQ and AutoAWQ store them: what both schemes
// share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"

namespace octavo {

// Appends what keeps float activations over int weights of a channel or of groups, in the format
// `is_format` accepts, from being what is declared.
void AddInputMajorDifferences(const QuantizationScheme& declared,
                              bool (*is_format)(std::string_view),
                              std::vector<std::string>* differences);

// Groups of inputs that share a scale; 0 when the group size does not divide the inputs.
int64_t InputGroups(const LinearLayer& layer);

// `scales` [groups, n], in a float dtype, and the bias.
void DeclareScalesAndBias(const LinearLayer& layer, std::vector<DeclaredTensor>* tensors);

// Codes I8 [k, n] and zero points I8 [groups, n], both less half their range, with the layer's
// `scales`, as a weight [n, k]. InvalidArgument when a symmetric layer has a zero point but 0, or a
// scale is NaN or Inf.
Result<QuantizedWeight> FromInputMajor(const LinearLayer& layer, const LayerViews& tensors,
                                       const Tensor& codes, const Tensor& zero_points);

// Scheme::resave: pack-quantized, its scales in the dtype that they have.
Result<ResavedLayer> ResaveIntegers(const LinearLayer& layer, DType scale_dtype,
                                    QuantizedWeight weight);

// For PrepareCoded: the codes as nibbles or bytes of its own, columns sorted by group.
Result<CodedWeight> CodedFromIntegers(const LinearLayer& layer, QuantizedWeight weight);

}  // namespace octavo
