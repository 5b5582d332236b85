#include "runtime/sample_parts.h"

#include "runtime/states.h"

namespace octavo {

std::vector<SamplePart> CutIntoParts(std::span<const std::vector<TokenId>> samples) {
  std::vector<SamplePart> parts;
  int64_t row = 0;
  for (const std::vector<TokenId>& sample : samples) {
    if (parts.empty() || parts.back().batch.rows() + std::ssize(sample) > kRowsPerPass)
      parts.emplace_back().first_row = row;
    SamplePart& part = parts.back();
    for (size_t i = 0; i < sample.size(); ++i)
      part.batch.Add(sample[i], part.sequences, static_cast<int64_t>(i), false);
    ++part.sequences;
    row += std::ssize(sample);
  }
  return parts;
}

void RunBlock(Forward* forward, const Model& model, int64_t index, const SamplePart& part,
              std::span<float> hidden, Forward::Until until) {
  std::vector<SequenceState> states(static_cast<size_t>(part.sequences));
  std::vector<SequenceState*> pointers;
  for (SequenceState& state : states) {
    state = MakeSequenceState(model, DType::kF32);
    pointers.push_back(&state);
  }
  forward->Block(index, part.batch, pointers, hidden, until);
}

}  // namespace octavo
