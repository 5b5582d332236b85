// Tokens per second of a model: one prefill, then one sequence decoded.
#pragma once

#include <cstdint>
#include <span>

#include "base/context.h"
#include "base/status.h"
#include "model/graph.h"
#include "text/tokenizer.h"

namespace octavo {

struct ThroughputResult {
  int64_t prefill_tokens = 0;
  double prefill_tokens_per_second = 0;
  int64_t decode_tokens = 0;
  double decode_tokens_per_second = 0;
};

// Best of three prefills of `prompt`, then `decode_tokens` greedy tokens behind it, with a BF16
// cache, as `generate` runs.
Result<ThroughputResult> MeasureThroughput(const Model& model, std::span<const TokenId> prompt,
                                           int64_t decode_tokens, const Context& context);

}  // namespace octavo
