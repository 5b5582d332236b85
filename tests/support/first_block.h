// The inputs of a model's first layers on the goldens' calibration data.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "io/safetensors.h"
#include "model/forward.h"
#include "runtime/states.h"
#include "support/golden_files.h"

namespace octavo::testing {

// Runs block 0 over each sample of tests/data/checkpoints/calibration.safetensors with this tap.
inline void TapFirstBlock(const Model& model, const Tap& tap, const Context& context) {
  Forward forward(model, context);
  forward.set_tap(tap);
  const auto data = SafetensorsFile::Open(TestData("checkpoints/calibration.safetensors")).value();
  const TensorView ids = data.Find("input_ids").value();
  const auto length = static_cast<size_t>(ids.shape[1]);
  for (size_t sample = 0; sample < static_cast<size_t>(ids.shape[0]); ++sample) {
    Batch batch;
    for (size_t i = 0; i < length; ++i)
      batch.Add(ids.data<int32_t>()[sample * length + i], 0, static_cast<int64_t>(i), false);
    std::vector<float> hidden(length * static_cast<size_t>(model.spec.hidden_size));
    ASSERT_OK(forward.Embed(batch, hidden));
    SequenceState state = MakeSequenceState(model, DType::kF32);
    SequenceState* states[] = {&state};
    forward.Block(0, batch, states, hidden);
  }
}

}  // namespace octavo::testing
