// How far a model's predictions are from another's: KL divergence and equal top choices, over every
// position of some windows.
#pragma once

#include <cstdint>
#include <span>

#include "base/context.h"
#include "base/status.h"
#include "eval/windows.h"
#include "model/graph.h"

namespace octavo {

struct DivergenceResult {
  double kl = 0;         // mean KL(base || model), nats
  double same_top1 = 0;  // share of positions with the same most likely token
  int64_t positions = 0;
};

// The two models must have one vocabulary; InvalidArgument otherwise.
Result<DivergenceResult> Divergence(const Model& base, const Model& model,
                                    std::span<const Window> windows, const Context& context);

}  // namespace octavo
