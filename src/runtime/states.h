// The memory of sequences: who makes states, in which element type.
#pragma once

#include "model/graph.h"
#include "model/state.h"
#include "tensor/dtype.h"

namespace octavo {

// An empty state of one sequence. Keys and values are kept as the checkpoint declares; where it
// declares nothing, in `kv_dtype`: BF16 for generation and serving, F32 where logits are measured.
SequenceState MakeSequenceState(const Model& model, DType kv_dtype);

// Bytes that one more position of a sequence takes in all layers of such a state; windows apart,
// which keep no more than they see.
int64_t CacheBytesOfToken(const Model& model, DType kv_dtype);

}  // namespace octavo
