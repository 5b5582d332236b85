#include "compress/block_work.h"

#include <algorithm>
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
  if (hessian.empty()) return;
  const std::span<float> h = hessian.mutable_data<float>();
  for (size_t i = 0; i < s.size(); ++i) {
    for (size_t j = 0; j < s.size(); ++j) h[i * s.size() + j] /= s[i] * s[j];
  }
}

}  // namespace octavo
