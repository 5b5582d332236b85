#include "compress/layer_error.h"

#include <algorithm>
#include <numeric>

#include "kernels/matmul_float/matmul_float.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

constexpr int64_t kTileRows = 64;  // rows of D whose product with H is held at a time

double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

std::vector<float> Difference(std::span<const float> a, std::span<const float> b) {
  std::vector<float> difference(a.size());
  std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
  return difference;
}

}  // namespace

double OutputEnergy(std::span<const float> d, int64_t n, int64_t k, std::span<const float> hessian,
                    const Context& context) {
  const int64_t tiles = (n + kTileRows - 1) / kTileRows;
  std::vector<double> energy(static_cast<size_t>(tiles));
  context.pool.ParallelFor(tiles, [&](int64_t tile) {
    const int64_t first = tile * kTileRows;
    const int64_t rows = std::min(kTileRows, n - first);
    const auto part = d.subspan(static_cast<size_t>(first * k), static_cast<size_t>(rows * k));
    std::vector<float> product(part.size());
    SgemmTile(false, false, rows, k, k, 1.0F, part.data(), k, hessian.data(), k, 0.0F,
              product.data(), k, context.isa);
    energy[static_cast<size_t>(tile)] = Dot(part, product) / 2;
  });
  return std::accumulate(energy.begin(), energy.end(), 0.0);
}

Result<LayerReport> MeasureLayer(const LayerWork& layer, const InputStatistics& statistics,
                                 const Context& context) {
  const int64_t n = layer.layer->n;
  const int64_t k = layer.layer->k;
  const QuantizationArgs& args = *layer.layer->quantization.weights;
  const std::span<const float> weight = layer.weight.data<float>();
  const auto energy = [&](std::span<const float> d) {
    if (statistics.hessian.empty()) return Dot(d, d);
    return OutputEnergy(d, n, k, statistics.hessian.data<float>(), context);
  };
  const auto error = [&](const QuantizedWeight& quantized) {
    return energy(Difference(weight, Dequantize(args, quantized).data<float>()));
  };

  LayerReport report{.name = layer.layer->name, .method = layer.method, .note = layer.note};
  const double whole = energy(weight);
  if (whole <= 0) return report;  // nothing comes out of this layer
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight nearest,
                          QuantizeToNearest(args, weight, n, k, layer.layer->model_dtype));
  report.error_to_nearest = error(nearest) / whole;
  report.error = error(*layer.quantized) / whole;
  return report;
}

}  // namespace octavo
