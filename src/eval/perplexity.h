// Perplexity of a model on a text: exp of the mean negative log-likelihood a token, in windows.
#pragma once

#include <cstdint>
#include <span>

#include "base/context.h"
#include "base/status.h"
#include "eval/windows.h"
#include "model/graph.h"

namespace octavo {

struct PerplexityResult {
  double perplexity = 0;
  double nll = 0;      // mean, nats a token
  int64_t tokens = 0;  // scored
  int64_t windows = 0;
  double seconds = 0;
};

Result<PerplexityResult> Perplexity(const Model& model, std::span<const Window> windows,
                                    const Context& context);

}  // namespace octavo
