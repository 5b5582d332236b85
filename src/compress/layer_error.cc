#include "compress/layer_error.h"

#include <algorithm>
#include <numeric>

#include "kernels/matmul_float/matmul_float.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

// Rows of D, and columns of H, whose product is held at a time.
constexpr int64_t kTileRows = 192;
constexpr int64_t kTileColumns = 192;

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
  const int64_t row_tiles = (n + kTileRows - 1) / kTileRows;
  const int64_t column_tiles = (k + kTileColumns - 1) / kTileColumns;
  std::vector<double> energy(static_cast<size_t>(row_tiles * column_tiles));
  context.pool.ParallelFor(row_tiles * column_tiles, [&](int64_t task) {
    const int64_t row = task / column_tiles * kTileRows;
    const int64_t rows = std::min(kTileRows, n - row);
    // The last columns first: they have the most above them.
    const int64_t column = (column_tiles - 1 - task % column_tiles) * kTileColumns;
    const int64_t columns = std::min(kTileColumns, k - column);
    const float* d_rows = d.data() + row * k;
    // H is symmetric: what lies above the diagonal counts twice.
    std::vector<float> product(static_cast<size_t>(rows * columns));
    SgemmTile(false, false, rows, columns, column, 2.0F, d_rows, k, hessian.data() + column, k,
              0.0F, product.data(), columns, context.isa);
    SgemmTile(false, false, rows, columns, columns, 1.0F, d_rows + column, k,
              hessian.data() + column * k + column, k, column > 0 ? 1.0F : 0.0F, product.data(),
              columns, context.isa);
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      sum += Dot({d_rows + i * k + column, static_cast<size_t>(columns)},
                 std::span(product).subspan(static_cast<size_t>(i * columns),
                                            static_cast<size_t>(columns)));
    }
    energy[static_cast<size_t>(task)] = sum / 2;
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
