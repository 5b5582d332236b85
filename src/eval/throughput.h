// Tokens per second of a model: a prompt, and sequences that are decoded together.
#pragma once

#include <cstdint>
#include <span>

#include "base/context.h"
#include "base/status.h"
#include "model/graph.h"
#include "text/token_id.h"

namespace octavo {

// Tokens per second of reading `prompt` with a BF16 cache, as `generate` runs: the best of as many
// times as fit in `seconds`, three at least.
Result<double> MeasurePrefill(const Model& model, std::span<const TokenId> prompt, double seconds,
                              const Context& context);

struct DecodeLoad {
  int64_t sequences = 1;  // decoded together
  int64_t tokens = 128;   // greedy tokens of each
};

// Tokens per second of all sequences together, each behind the same `prompt` (not counted): the
// best of as many times as fit in `seconds`, one at least. InvalidArgument when prompt and tokens
// exceed the model's positions.
Result<double> MeasureDecode(const Model& model, std::span<const TokenId> prompt,
                             const DecodeLoad& load, double seconds, const Context& context);

// Multiply-adds of the linear layers of all blocks, for one token: what a prompt costs beside
// attention and the head of its last token.
int64_t BlockMultiplyAdds(const Model& model);

// Weights that the model has, however they are stored; a head that is the embedding counts once.
int64_t ParameterCount(const Model& model);

// Bytes that a step of decoding reads: the weights of all linear layers and the head once, and the
// keys and values (as the checkpoint declares, else BF16) of `sequences` of `positions` each.
int64_t DecodeBytes(const Model& model, int64_t sequences, int64_t positions);

// Whether the linear layers of the blocks multiply int8 by int8.
bool RunsInInt8(const Model& model);

}  // namespace octavo
