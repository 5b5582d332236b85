#include "compress/calibration.h"

#include "kernels/rms_norm/rms_norm.h"
#include "runtime/states.h"

namespace octavo {

Calibration::Calibration(const std::vector<std::vector<TokenId>>& samples, HiddenStates hidden)
    : hidden_(std::move(hidden)) {
  int64_t row = 0;
  for (const std::vector<TokenId>& sample : samples) {
    if (parts_.empty() || parts_.back().batch.rows() + std::ssize(sample) > kRowsPerPass) {
      parts_.emplace_back().first_row = row;
    }
    Part& part = parts_.back();
    for (size_t i = 0; i < sample.size(); ++i) {
      part.batch.Add(sample[i], part.sequences, static_cast<int64_t>(i), false);
    }
    ++part.sequences;
    row += std::ssize(sample);
  }
  OCTAVO_CHECK(row == hidden_.tokens()) << row << " tokens for " << hidden_.tokens();
}

Status Calibration::Embed(const Model& model, const Context& context) {
  Forward forward(model, context);
  for (const Part& part : parts_) {
    scratch_.resize(static_cast<size_t>(part.batch.rows() * model.spec.hidden_size));
    OCTAVO_RETURN_IF_ERROR(forward.Embed(part.batch, scratch_).Annotate("calibration data"));
    OCTAVO_RETURN_IF_ERROR(hidden_.Append(scratch_));
  }
  return hidden_.Advance(0);
}

Status Calibration::Load(int64_t block) {
  OCTAVO_RETURN_IF_ERROR(hidden_.Load(block));
  return hidden_.RemoveOthers();
}

Status Calibration::Observe(Forward* forward, const Model& model, int64_t index,
                            const Context& context, Forward::Until until) {
  for (const Part& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const std::span<float> hidden, ReadPart(part, model));
    RunPart(forward, model, index, part, hidden, until);
  }
  return OkStatus();
}

Status Calibration::ObserveHead(const Model& model, const Tap& tap, const Context& context) {
  const int64_t width = model.spec.hidden_size;
  for (const Part& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const std::span<float> hidden, ReadPart(part, model));
    running_ = &part.batch;
    RmsNorm(hidden.data(), width, part.batch.rows(), model.final_norm_weight.data<float>(),
            model.spec.norm_epsilon, hidden.data(), width, context.isa, context.pool);
    tap(model.head, {hidden.data(), part.batch.rows(), width, width});
  }
  return OkStatus();
}

Status Calibration::FeedOn(Forward* forward, const Model& model, int64_t index,
                           const Context& context) {
  for (const Part& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const std::span<float> hidden, ReadPart(part, model));
    RunPart(forward, model, index, part, hidden, Forward::Until::kEnd);
    OCTAVO_RETURN_IF_ERROR(hidden_.Append(hidden));
  }
  return hidden_.Advance(index + 1);
}

Result<std::span<float>> Calibration::ReadPart(const Part& part, const Model& model) {
  scratch_.resize(static_cast<size_t>(part.batch.rows() * model.spec.hidden_size));
  OCTAVO_RETURN_IF_ERROR(hidden_.Read(part.first_row, scratch_));
  return std::span<float>(scratch_);
}

void Calibration::RunPart(Forward* forward, const Model& model, int64_t index, const Part& part,
                          std::span<float> hidden, Forward::Until until) {
  running_ = &part.batch;
  std::vector<SequenceState> states(static_cast<size_t>(part.sequences));
  std::vector<SequenceState*> pointers;
  for (SequenceState& state : states) {
    state = MakeSequenceState(model, DType::kF32);
    pointers.push_back(&state);
  }
  forward->Block(index, part.batch, pointers, hidden, until);
}

Status ForEachSample(const Rows& x, std::span<const int32_t> sequence,
                     const std::function<Status(const Rows& sample)>& visit) {
  for (int64_t first = 0; first < x.m;) {
    int64_t end = first + 1;
    while (end < x.m && sequence[static_cast<size_t>(end)] == sequence[static_cast<size_t>(first)])
      ++end;
    OCTAVO_RETURN_IF_ERROR(visit({x.data + first * x.stride, end - first, x.k, x.stride}));
    first = end;
  }
  return OkStatus();
}

}  // namespace octavo
