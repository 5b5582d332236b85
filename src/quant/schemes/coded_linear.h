// CodedLinear: layers whose weights stay codes, computed in float32 (kernels/matmul_coded), their
// input rounded as declared. What schemes of many kinds prepare.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/matmul_coded/matmul_coded.h"
#include "quant/scheme.h"

namespace octavo {

// One layer's weight. The matrix points into the checkpoint or into `owned`.
struct CodedWeight {
  CodedMatrix matrix;
  std::vector<Tensor> owned;
  // Where the codes' columns come from, when they are not in the order of the inputs; empty
  // otherwise.
  std::vector<int64_t> column_order;
};

// The weight of one layer from its tensors, as a scheme stores it.
using ReadCodedWeight = Result<CodedWeight>(const LinearLayer& layer, const LayerViews& tensors);

// Scheme::prepare for layers that `read` reads. `name` is the scheme's, for Describe:
// "W8A8 FP8: float8 weights, float8 activations, dynamic token".
Result<std::unique_ptr<PreparedLinear>> PrepareCoded(std::string name, ReadCodedWeight* read,
                                                     std::span<const LinearLayer> layers,
                                                     std::span<const LayerViews> tensors,
                                                     const PrepareOptions& options,
                                                     const Context& context);

// Scheme::prepare_table, likewise.
Result<std::unique_ptr<RowTable>> PrepareCodedTable(ReadCodedWeight* read, const LinearLayer& layer,
                                                    const LayerViews& tensors,
                                                    const Context& context);

// Points the matrix to scales as they are stored (F16 ones are copied as float32), after checking
// that none is NaN or Inf, and fills the units of the layer's weight args: tensor, channel, group
// or block.
Status ReadScales(const LinearLayer& layer, const TensorView& scales, CodedWeight* weight);

// The scales and, where there are any, zero points (I8, of one scale each) of [rows, columns]
// units are those of the matrix.
void SetZeroPoints(Tensor zero_points, CodedWeight* weight);

// Codes I8 [n, k] of at most 4 bits as nibbles, or of more as bytes, owned, with the table of
// signed integers.
void SetIntegerCodes(const TensorView& codes, int bits, CodedWeight* weight);

// InvalidArgument when an E4M3 weight holds NaN.
Status CheckE4M3(const LinearLayer& layer, const TensorView& codes);
// The matrix reads E4M3 codes [n, k] where they lie, after that check.
Status SetE4M3Codes(const LinearLayer& layer, const TensorView& codes, CodedWeight* weight);

// table[u] = u - 8: four-bit integers as they are packed.
std::array<float, 16> Int4Table();

}  // namespace octavo
