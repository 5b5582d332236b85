// Integer weights of 2 to 8 bits as they lie on disk, packed into words or one a byte
// (checkpoint-format 2.3, 2.4): what all schemes with such weights share.
#pragma once

#include <string>
#include <vector>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"

namespace octavo {

// Appends what keeps the weights from being read: type, bits, strategy, format.
void AddIntWeightDifferences(const QuantizationScheme& declared,
                             std::vector<std::string>* differences);

// Scheme::declare, input scales and bias among them.
std::vector<DeclaredTensor> DeclareIntWeight(const LinearLayer& layer);

// Scheme::pack, unpack and dequantize.
Result<LayerTensors> PackIntWeight(const LinearLayer& layer, QuantizedWeight weight);
Result<QuantizedWeight> UnpackIntWeight(const LinearLayer& layer, const LayerViews& tensors);
Result<Tensor> DequantizeIntWeight(const LinearLayer& layer, const LayerViews& tensors);

// For PrepareCoded: four-bit words are read where they lie; other widths become nibbles or bytes.
// Columns of a checkpoint with scattered groups (weight_g_idx) are sorted by group.
Result<CodedWeight> ReadIntWeight(const LinearLayer& layer, const LayerViews& tensors);

}  // namespace octavo
