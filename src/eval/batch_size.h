// How many answers are generated side by side: as many as memory holds, and as help.
#pragma once

#include <cstdint>
#include <optional>

#include "model/graph.h"

namespace octavo {

// What one answer takes at most: keys and values of `positions` in float32, or as the checkpoint
// declares, while they grow; and a row of logits.
int64_t AnswerBytes(const Model& model, int64_t positions);

// Of answers of `answer_bytes` each in `free_bytes` (nothing: not known), of which a part is left
// to others: at least 1, at most what a pass of the scheduler takes.
int64_t BatchSizeFor(int64_t answer_bytes, std::optional<int64_t> free_bytes);

}  // namespace octavo
