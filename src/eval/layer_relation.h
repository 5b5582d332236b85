// How the weights of one block relate in two checkpoints of a model: what smoothing moved between
// the layers of the second, and how far its weights are off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "runtime/load.h"

namespace octavo {

struct LayerRelation {
  // [n]: the model's outputs times this are in the base's units; empty: they are already.
  std::vector<float> output_scale;
  // Signal to noise of the dequantized weights, in decibels: 10 log10(||W||^2 / ||Wq - W||^2), the
  // scales undone. Infinity: equal. None: not comparable.
  std::optional<double> weight_sqnr_db;
  // What it reads, or gives, was rotated for good (SpinQuant's R1 and R2): neither its weights nor
  // its outputs can be set beside the base's.
  bool other_basis = false;
};

struct GroupRelation {
  // [k]: the model's layers read the base's input times this; empty: the same input.
  std::vector<float> input_scale;
  std::vector<LayerRelation> layers;
};

struct BlockRelation {
  std::vector<GroupRelation> groups;  // in the order of Block::groups()
  // The model was rotated (SpinQuant's R1): its hidden states are in another basis, and nothing of
  // the block can be set beside the base's.
  bool rotated = false;
  // Scales were moved, or a rotation put, between the layers of a group and those of the one behind
  // it (v and o, up and down): each works only with the other.
  bool attention_tied = false;
  bool mlp_tied = false;
};

// InvalidArgument, with both, when the sizes of two models differ.
Status CheckSameSizes(const Model& base, const Model& model);

// The two models have the same sizes and are loaded. Where a norm differs, the layers behind it
// read its output times the ratio, exactly. A block with such a norm may also have been scaled from
// v to o and from up to down (AWQ): those scales are found by least squares, row by row and column
// by column, and are taken for real where the middle eight tenths of them span a fifth and more.
// Their error is about 1/n of the quantization noise.
Result<BlockRelation> RelateBlocks(const LoadedModel& base, const LoadedModel& model, int64_t index,
                                   const Context& context);

}  // namespace octavo
