#include "compress/calibration.h"

#include "runtime/states.h"

namespace octavo {

namespace {

// Rows of one pass: enough for the matmuls to run at full speed, few enough for their scratch to
// stay in the cache.
constexpr int64_t kRowsPerPass = 1024;

}  // namespace

Result<Calibration> Calibration::Embed(const Model& model,
                                       const std::vector<std::vector<TokenId>>& samples,
                                       const Context& context) {
  Calibration calibration;
  for (const std::vector<TokenId>& sample : samples) {
    if (calibration.parts_.empty() ||
        calibration.parts_.back().batch.rows() + std::ssize(sample) > kRowsPerPass) {
      calibration.parts_.emplace_back();
    }
    Part& part = calibration.parts_.back();
    for (size_t i = 0; i < sample.size(); ++i) {
      part.batch.Add(sample[i], part.sequences, static_cast<int64_t>(i), false);
    }
    ++part.sequences;
    calibration.tokens_ += std::ssize(sample);
  }
  Forward forward(model, context);
  for (Part& part : calibration.parts_) {
    part.hidden.resize(static_cast<size_t>(part.batch.rows() * model.spec.hidden_size));
    OCTAVO_RETURN_IF_ERROR(forward.Embed(part.batch, part.hidden).Annotate("calibration data"));
  }
  return calibration;
}

Status Calibration::RunBlock(Forward* forward, const Model& model, int64_t index, Output output,
                             const Context& context) {
  for (Part& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    std::vector<SequenceState> states(static_cast<size_t>(part.sequences));
    std::vector<SequenceState*> pointers;
    for (SequenceState& state : states) {
      state = MakeSequenceState(model, DType::kF32);
      pointers.push_back(&state);
    }
    std::vector<float>* hidden = &part.hidden;
    if (output == Output::kDrop) {
      scratch_ = part.hidden;
      hidden = &scratch_;
    }
    forward->Block(index, part.batch, pointers, *hidden);
  }
  return OkStatus();
}

}  // namespace octavo
