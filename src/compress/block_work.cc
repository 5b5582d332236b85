#include "compress/block_work.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/gram/gram.h"

namespace octavo {

void InputStatistics::Add(const Rows& x, const StatisticsNeeds& needs, const Context& context) {
  const auto k = static_cast<size_t>(x.k);
  if (needs.channel_range) {
    minimum.resize(k, std::numeric_limits<float>::infinity());
    maximum.resize(k, -std::numeric_limits<float>::infinity());
    for (int64_t row = 0; row < x.m; ++row) {
      const float* values = x.data + row * x.stride;
      for (size_t j = 0; j < k; ++j) {
        minimum[j] = std::min(minimum[j], values[j]);
        maximum[j] = std::max(maximum[j], values[j]);
      }
    }
  }
  if (needs.hessian) {
    if (hessian.empty()) hessian = Tensor::Zeros(DType::kF32, {x.k, x.k});
    AddGram(x.data, x.stride, x.m, x.k, 2.0F, hessian.mutable_data<float>(), context.isa,
            context.pool);
  }
  if (needs.mean_square) {
    sum_of_squares.resize(k, 0.0);
    for (int64_t row = 0; row < x.m; ++row) {
      const float* values = x.data + row * x.stride;
      for (size_t j = 0; j < k; ++j)
        sum_of_squares[j] += static_cast<double>(values[j]) * static_cast<double>(values[j]);
    }
  }
  if (needs.mean_magnitude) {
    sum_of_magnitudes.resize(k, 0.0);
    for (int64_t row = 0; row < x.m; ++row) {
      const float* values = x.data + row * x.stride;
      for (size_t j = 0; j < k; ++j)
        sum_of_magnitudes[j] += static_cast<double>(std::fabs(values[j]));
    }
  }
  tokens += x.m;
}

void InputStatistics::Finish(const Context& context) {
  if (hessian.empty()) return;
  MirrorUpper(hessian.shape().front(), hessian.mutable_data<float>(), context.pool);
}

void InputStatistics::DivideInput(std::span<const float> s) {
  divisor.resize(s.size(), 1.0F);
  for (size_t j = 0; j < s.size(); ++j) divisor[j] *= s[j];
  for (size_t j = 0; j < minimum.size(); ++j) {
    minimum[j] /= s[j];
    maximum[j] /= s[j];
  }
  for (size_t j = 0; j < sum_of_squares.size(); ++j) {
    const auto divided_by = static_cast<double>(s[j]);
    sum_of_squares[j] /= divided_by * divided_by;
  }
  for (size_t j = 0; j < sum_of_magnitudes.size(); ++j)
    sum_of_magnitudes[j] /= static_cast<double>(s[j]);
  if (hessian.empty()) return;
  const std::span<float> h = hessian.mutable_data<float>();
  for (size_t i = 0; i < s.size(); ++i) {
    for (size_t j = 0; j < s.size(); ++j) h[i * s.size() + j] /= s[i] * s[j];
  }
}

Rows InputStatistics::AsDivided(const Rows& x, std::vector<float>* buffer) const {
  if (divisor.empty()) return x;
  buffer->resize(static_cast<size_t>(x.m * x.k));
  float* out = buffer->data();
  for (int64_t row = 0; row < x.m; ++row) {
    const float* values = x.data + row * x.stride;
    for (size_t j = 0; j < divisor.size(); ++j) *out++ = values[j] / divisor[j];
  }
  return {buffer->data(), x.m, x.k, x.k};
}

GroupFacts::GroupFacts(const GroupWork& group) {
  for (const LayerWork& layer : group.layers) {
    const auto& weights = layer.layer->quantization.weights;
    if (weights && HasGlobalScale(*weights))
      shared_amax_ = std::max(shared_amax_, LargestMagnitude(layer.weight.data<float>()));
  }
  const InputStatistics& statistics = group.statistics;
  const auto tokens = static_cast<double>(std::max<int64_t>(1, statistics.tokens));
  for (double sum : statistics.sum_of_squares)
    mean_square_.push_back(static_cast<float>(sum / tokens));
}

}  // namespace octavo
