// The logits of golden prompts.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "base/context.h"
#include "eval/windows.h"
#include "model/graph.h"
#include "tensor/tensor.h"

namespace octavo::testing {

// Logits [B, T, V] of ids, I32 [B, T]; each row is a sequence of its own.
inline std::vector<float> LogitsOf(const Model& model, const TensorView& ids,
                                   const Context& context) {
  WindowForward forward(model, context);
  std::vector<float> logits;
  for (int64_t row = 0; row < ids.shape[0]; ++row) {
    const auto length = static_cast<size_t>(ids.shape[1]);
    EXPECT_TRUE(
        forward.Run(ids.data<int32_t>().subspan(static_cast<size_t>(row) * length, length)).ok());
    const auto part = forward.Logits(0, ids.shape[1]);
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

}  // namespace octavo::testing
