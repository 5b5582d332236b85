// Weights whose groups of columns are not neighbours (activation ordering, checkpoint-format 4.8).
#pragma once

#include <string>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"

namespace octavo {

// The group of each column, I32 [k], from the tensor `suffix`, which may be missing; empty where
// groups are neighbours. InvalidArgument when one does not exist, or they are of different sizes.
Result<Tensor> ReadGroupOfColumn(const LinearLayer& layer, const LayerViews& tensors,
                                 const std::string& suffix);

// SetIntegerCodes of codes I8 [n, k] with their columns sorted by group, if there are any groups.
void SetGroupedCodes(Tensor codes, const Tensor& group_of_column, int bits, CodedWeight* weight);

}  // namespace octavo
