// Samples cut into parts that are run in one pass, block by block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward.h"
#include "model/graph.h"
#include "text/token_id.h"

namespace octavo {

// Some samples, run together. Their rows lie in the order of the samples.
struct SamplePart {
  Batch batch;  // no row wants logits
  int32_t sequences = 0;
  int64_t first_row = 0;  // of all samples' rows
};

// Rows of one pass: enough for the matmuls to run at full speed, few enough for their scratch to
// stay in the cache.
inline constexpr int64_t kRowsPerPass = 1024;

// A sample longer than kRowsPerPass is a part of its own.
std::vector<SamplePart> CutIntoParts(std::span<const std::vector<TokenId>> samples);

// Runs block `index`, which sees the part's samples from their beginning, in place over the part's
// hidden states [rows, width]. `forward` is of `model`.
void RunBlock(Forward* forward, const Model& model, int64_t index, const SamplePart& part,
              std::span<float> hidden, Forward::Until until = Forward::Until::kEnd);

}  // namespace octavo
