#include "compress/modifiers/awq_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/matmul_float/matmul_float.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

struct Candidate {
  double ratio = 0;
  bool duo = false;
};

// In the library's order; the first, which changes nothing, is in every one.
std::vector<Candidate> Candidates(const AwqOptions& options) {
  std::vector<Candidate> candidates = {{0, false}};
  const auto add = [&](int64_t count, bool duo) {
    for (int64_t i = 0; i < count; ++i) {
      const double ratio = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
      candidates.push_back({ratio, duo});
    }
  };
  switch (options.duo_scaling) {
    case DuoScaling::kOff:
      add(options.n_grid, false);
      break;
    case DuoScaling::kOn:
      add(options.n_grid - 1, true);
      break;
    case DuoScaling::kBoth:
      add(options.n_grid / 2, false);
      add(options.n_grid / 2, true);
      break;
  }
  return candidates;
}

bool IsQuantized(const LayerWork& layer) {
  return layer.layer->quantization.weights.has_value();
}

// w_j: how much of its unit's range the weights of input j take, on average.
std::vector<double> WeightMeans(const GroupWork& group) {
  std::vector<double> sums(static_cast<size_t>(group.layers.front().layer->k), 0.0);
  double rows = 0;
  for (const LayerWork& layer : group.layers) {
    if (!IsQuantized(layer)) continue;
    const LinearLayer& linear = *layer.layer;
    const Result<ScaleGrid> grid = MakeScaleGrid(*linear.quantization.weights, linear.n, linear.k);
    OCTAVO_CHECK(grid.ok()) << grid.status().message();
    const std::span<const float> weight = layer.weight.data<float>();
    std::vector<float> largest(static_cast<size_t>(grid->rows * grid->columns), 0.0F);
    for (int64_t row = 0; row < linear.n; ++row) {
      for (int64_t j = 0; j < linear.k; ++j) {
        float& unit = largest[static_cast<size_t>(grid->Unit(row, j))];
        unit = std::max(unit, std::fabs(weight[static_cast<size_t>(row * linear.k + j)]));
      }
    }
    for (int64_t row = 0; row < linear.n; ++row) {
      for (int64_t j = 0; j < linear.k; ++j) {
        const float unit = largest[static_cast<size_t>(grid->Unit(row, j))];
        sums[static_cast<size_t>(j)] += static_cast<double>(
            std::fabs(weight[static_cast<size_t>(row * linear.k + j)]) / (unit + 1e-6F));
      }
    }
    rows += static_cast<double>(linear.n);
  }
  for (double& sum : sums) sum /= rows;
  return sums;
}

std::vector<float> ScalesOf(const Candidate& candidate, std::span<const double> inputs,
                            std::span<const double> weights) {
  std::vector<double> scales(inputs.size());
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (size_t j = 0; j < scales.size(); ++j) {
    double scale = std::pow(inputs[j], candidate.ratio);
    if (candidate.duo) scale /= std::pow(weights[j], 1 - candidate.ratio) + 1e-4;
    scales[j] = std::max(scale, 1e-4);
    largest = std::max(largest, scales[j]);
    smallest = std::min(smallest, scales[j]);
  }
  const double middle = std::sqrt(largest * smallest);
  std::vector<float> result;
  for (double scale : scales) {
    const auto normed = static_cast<float>(scale / middle);
    result.push_back(std::isfinite(normed) && normed > 0 ? normed : 1.0F);
  }
  return result;
}

// W diag(s) of each quantized layer.
std::vector<Tensor> Scaled(const GroupWork& group, std::span<const float> scales) {
  std::vector<Tensor> scaled;
  for (const LayerWork& layer : group.layers) {
    if (!IsQuantized(layer)) continue;
    Tensor& weight = scaled.emplace_back(layer.weight.Clone());
    const std::span<float> values = weight.mutable_data<float>();
    for (size_t row = 0; row < values.size(); row += scales.size()) {
      for (size_t j = 0; j < scales.size(); ++j) values[row + j] *= scales[j];
    }
  }
  return scaled;
}

// The sum over the quantized layers of d H d^T, d = Q(W s) / s - W, on the calling thread.
double ErrorOf(const GroupWork& group, std::span<const float> scales, const Context& context) {
  const std::vector<Tensor> scaled = Scaled(group, scales);
  LayerFacts facts;
  for (const Tensor& weight : scaled)
    facts.shared_amax = std::max(facts.shared_amax, LargestMagnitude(weight.data<float>()));
  double error = 0;
  size_t at = 0;
  for (const LayerWork& layer : group.layers) {
    if (!IsQuantized(layer)) continue;
    const Tensor& weight = scaled[at++];
    const LinearLayer& linear = *layer.layer;
    QuantizationArgs args = *linear.quantization.weights;
    args.observer.reset();
    args.observer_kwargs = Value::MakeObject();
    const Result<QuantizedWeight> quantized =
        QuantizeToNearest(args, weight.data<float>(), linear.n, linear.k, linear.model_dtype,
                          Arithmetic::kFloat32, facts);
    if (!quantized.ok()) return std::numeric_limits<double>::infinity();
    Tensor difference = Dequantize(args, *quantized);
    const std::span<float> d = difference.mutable_data<float>();
    const std::span<const float> exact = layer.weight.data<float>();
    for (size_t i = 0; i < d.size(); ++i) d[i] = d[i] / scales[i % scales.size()] - exact[i];
    std::vector<float> product(d.size());
    MultiplyFloat(group.statistics.hessian, {}, d.data(), linear.k, linear.n, product.data(),
                  linear.k, context.isa, context.pool);
    for (int64_t row = 0; row < linear.n; ++row) {
      float sum = 0;
      for (int64_t j = row * linear.k; j < (row + 1) * linear.k; ++j)
        sum += d[static_cast<size_t>(j)] * product[static_cast<size_t>(j)];
      error += static_cast<double>(sum);
    }
  }
  return error / 2;  // the Hessian is that of 2 x^T x
}

}  // namespace

Result<AwqScales> SearchAwqScales(const GroupWork& group, const AwqOptions& options,
                                  const Context& context) {
  const InputStatistics& statistics = group.statistics;
  OCTAVO_CHECK(!statistics.hessian.empty() && !statistics.sum_of_magnitudes.empty());
  std::vector<double> inputs = statistics.sum_of_magnitudes;
  for (double& input : inputs)
    input /= static_cast<double>(std::max<int64_t>(1, statistics.tokens));
  const std::vector<double> weights = WeightMeans(group);
  const std::vector<Candidate> candidates = Candidates(options);
  std::vector<double> errors(candidates.size());
  context.pool.ParallelFor(std::ssize(candidates), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    errors[at] = ErrorOf(group, ScalesOf(candidates[at], inputs, weights), context);
  });
  size_t best = 0;
  for (size_t i = 1; i < errors.size(); ++i) {
    if (errors[i] < errors[best] || !std::isfinite(errors[best])) best = i;
  }
  if (!std::isfinite(errors[best]))
    return InvalidArgument("no scale of the search has a finite error");
  return AwqScales{.scales = ScalesOf(candidates[best], inputs, weights),
                   .error_before = errors.front(),
                   .error = errors[best]};
}

}  // namespace octavo
