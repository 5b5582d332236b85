#include "compress/calibration.h"

namespace octavo {

Calibration::Calibration(const std::vector<std::vector<TokenId>>& samples, HiddenStates hidden)
    : parts_(CutIntoParts(samples)), hidden_(std::move(hidden)) {
  const int64_t rows = parts_.empty() ? 0 : parts_.back().first_row + parts_.back().batch.rows();
  OCTAVO_CHECK(rows == hidden_.tokens()) << rows << " tokens for " << hidden_.tokens();
}

Status Calibration::Embed(const Model& model, const Context& context) {
  Forward forward(model, context);
  for (const SamplePart& part : parts_) {
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
  for (const SamplePart& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const std::span<float> hidden, ReadPart(part, model));
    RunPart(forward, model, index, part, hidden, until);
  }
  return OkStatus();
}

Status Calibration::ObserveHead(const Model& model, const Tap& tap, const Context& context) {
  const int64_t width = model.spec.hidden_size;
  for (const SamplePart& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const std::span<float> hidden, ReadPart(part, model));
    running_ = &part.batch;
    ApplyNorm(model.spec, model.final_norm_weight, hidden.data(), width, part.batch.rows(),
              hidden.data(), width, context);
    tap(model.head, {hidden.data(), part.batch.rows(), width, width});
  }
  return OkStatus();
}

Status Calibration::FeedOn(Forward* forward, const Model& model, int64_t index,
                           const Context& context) {
  for (const SamplePart& part : parts_) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const std::span<float> hidden, ReadPart(part, model));
    RunPart(forward, model, index, part, hidden, Forward::Until::kEnd);
    OCTAVO_RETURN_IF_ERROR(hidden_.Append(hidden));
  }
  return hidden_.Advance(index + 1);
}

Result<std::span<float>> Calibration::ReadPart(const SamplePart& part, const Model& model) {
  scratch_.resize(static_cast<size_t>(part.batch.rows() * model.spec.hidden_size));
  OCTAVO_RETURN_IF_ERROR(hidden_.Read(part.first_row, scratch_));
  return std::span<float>(scratch_);
}

void Calibration::RunPart(Forward* forward, const Model& model, int64_t index,
                          const SamplePart& part, std::span<float> hidden, Forward::Until until) {
  running_ = &part.batch;
  RunBlock(forward, model, index, part, hidden, until);
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
