#include "compress/modifiers/gptq_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

// One of our threads a tile; Eigen must not start its own.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "compress/modifiers/cholesky.h"
#include "kernels/matmul_float/matmul_float.h"
#include "kernels/matmul_float/panels.h"

namespace octavo {

namespace {

// Rows of W that are swept together. They lie side by side, so that each step works on whole
// vectors of rows, and a block's errors are a panel of the matmul as they lie.
constexpr int64_t kRows = kPanelColumns;
// Columns between two updates inside a block: few, because these updates are plain loops.
constexpr int64_t kStep = 32;

std::vector<int64_t> SweepOrder(std::span<const float> h, int64_t k, bool by_diagonal) {
  std::vector<int64_t> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (by_diagonal) {
    const auto diagonal = [&](int64_t j) { return h[static_cast<size_t>(j * k + j)]; };
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return diagonal(a) != diagonal(b) ? diagonal(a) > diagonal(b) : a < b;
    });
  }
  return order;
}

// The Hessian as the factorisation wants it: columns in the sweep's order, reversed. With J the
// reversal, J H J = L L^T gives H = (J L J) (J L J)^T, and J L J is upper triangular, so that
// U = (J L J)^-1 = J L^-1 J has U^T U = H^-1: one factorisation and one triangular inverse.
struct ReversedHessian {
  std::span<const float> h;
  int64_t k;
  std::span<const int64_t> order;
  double dead_diagonal;  // what stands in for a zero on the diagonal

  template <typename T>
  void Fill(double dampening, std::span<T> out) const {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t row = order[static_cast<size_t>(k - 1 - i)];
      T* out_row = out.data() + i * k;
      const float* h_row = h.data() + row * k;
      for (int64_t j = 0; j < k; ++j) {
        out_row[j] = static_cast<T>(h_row[order[static_cast<size_t>(k - 1 - j)]]);
      }
      const double diagonal = static_cast<double>(h_row[row]);
      out_row[i] = static_cast<T>((diagonal > 0 ? diagonal : dead_diagonal) + dampening);
    }
  }
};

// U from L^-1.
template <typename T>
Tensor Reverse(std::span<const T> inverse, int64_t k) {
  Tensor upper(DType::kF32, {k, k});
  const std::span<float> out = upper.mutable_data<float>();
  const size_t last = inverse.size() - 1;
  for (size_t i = 0; i < inverse.size(); ++i) out[i] = static_cast<float>(inverse[last - i]);
  return upper;
}

// An empty tensor when the matrix is not positive definite.
Tensor FactorFloat32(const ReversedHessian& hessian, double dampening, const Context& context) {
  const int64_t k = hessian.k;
  std::vector<float> lower(static_cast<size_t>(k * k));
  hessian.Fill<float>(dampening, lower);
  if (!CholeskyInPlace(lower, k, context.isa, context.pool)) return {};
  std::vector<float> inverse(lower.size());
  InvertLowerTriangle(lower, k, inverse, context.isa, context.pool);
  if (!AllFinite(inverse)) return {};
  return Reverse<float>(inverse, k);
}

Tensor FactorFloat64(const ReversedHessian& hessian, double dampening) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t k = hessian.k;
  Matrix lower(k, k);
  const auto elements = static_cast<size_t>(k * k);
  hessian.Fill<double>(dampening, {lower.data(), elements});
  const Eigen::LLT<Eigen::Ref<Matrix>> factor(lower);  // in place
  if (factor.info() != Eigen::Success) return {};
  Matrix inverse = Matrix::Identity(k, k);
  factor.matrixL().solveInPlace(inverse);
  Tensor upper = Reverse<double>({inverse.data(), elements}, k);
  return AllFinite(upper.data<float>()) ? std::move(upper) : Tensor();
}

// One tile of kRows rows on its way through the sweep, [column in sweep order][row].
struct SweepTile {
  std::vector<float> w;           // [k, kRows]
  std::vector<float> error;       // [block_size, kRows]
  std::vector<float> scale;       // [columns of the grid, kRows]
  std::vector<float> zero_point;  // likewise
  std::vector<uint8_t> codes;     // [k, kRows]
};

// Quantizes one column of the tile: codes, scaled errors, and the sum of their squares. The kind is
// the caller's, or the loop would not vectorize.
template <CodeSet::Kind kind>
float QuantizeColumn(const float* w, const float* scale, const float* zero_point,
                     const CodeSet& codes, float u, float* error, uint8_t* out) {
  const CodeSet set{.kind = kind, .min = codes.min, .max = codes.max};
  std::array<float, kRows> squares;
  for (int64_t r = 0; r < kRows; ++r) {
    const float code = set.Round(w[r] / scale[r] + zero_point[r]);
    out[r] = set.Encode(code);
    error[r] = (w[r] - (code - zero_point[r]) * scale[r]) / u;
    squares[static_cast<size_t>(r)] = error[r] * error[r];
  }
  float sum = 0;
  for (float square : squares) sum += square;
  return sum;
}

class Sweep {
 public:
  Sweep(const HessianFactor& factor, std::span<const float> w, const ScaleGrid& grid,
        const ScaleAndZeroPoint& scales, const CodeSet& set, int64_t block_size, Isa isa)
      : factor_(factor),
        upper_(factor.upper.data<float>()),
        w_(w),
        grid_(grid),
        scales_(scales),
        set_(set),
        quantize_column_(set.kind == CodeSet::Kind::kInt    ? QuantizeColumn<CodeSet::Kind::kInt>
                         : set.kind == CodeSet::Kind::kE4M3 ? QuantizeColumn<CodeSet::Kind::kE4M3>
                                                            : QuantizeColumn<CodeSet::Kind::kE2M1>),
        block_size_(block_size),
        isa_(isa) {}

  // Rows from `first` on; their codes go to codes [n, k]. Returns their part of the loss.
  double Run(int64_t first, uint8_t* codes) const {
    SweepTile tile = Load(first);
    double loss = 0;
    for (int64_t begin = 0; begin < grid_.k; begin += block_size_) {
      loss += RunBlock(begin, std::min(begin + block_size_, grid_.k), &tile);
    }
    Store(tile, first, codes);
    return loss / 2;
  }

 private:
  SweepTile Load(int64_t first) const {
    const auto rows = static_cast<size_t>(kRows);
    SweepTile tile;
    tile.w.assign(static_cast<size_t>(grid_.k) * rows, 0.0F);
    tile.error.resize(static_cast<size_t>(block_size_) * rows);
    tile.scale.assign(static_cast<size_t>(grid_.columns) * rows, 1.0F);
    tile.zero_point.assign(tile.scale.size(), 0.0F);
    tile.codes.resize(tile.w.size());
    const bool has_zero_point = !scales_.zero_point.empty();
    const float global =
        scales_.global_scale.empty() ? 1.0F : scales_.global_scale.data<float>()[0];
    for (int64_t row = first; row < std::min(first + kRows, grid_.n); ++row) {
      const auto r = static_cast<size_t>(row - first);
      const float* w_row = w_.data() + row * grid_.k;
      for (size_t j = 0; j < factor_.order.size(); ++j) {
        tile.w[j * rows + r] = w_row[factor_.order[j]];
      }
      for (int64_t column = 0; column < grid_.columns; ++column) {
        const auto unit = static_cast<size_t>(grid_.Unit(row, column * grid_.unit_columns));
        const size_t at = static_cast<size_t>(column) * rows + r;
        tile.scale[at] = scales_.scale.data<float>()[unit] / global;
        if (has_zero_point)
          tile.zero_point[at] = static_cast<float>(scales_.zero_point.data<int8_t>()[unit]);
      }
    }
    return tile;
  }

  // Columns [begin, end), then what their errors do to all the columns behind.
  double RunBlock(int64_t begin, int64_t end, SweepTile* tile) const {
    double loss = 0;
    for (int64_t step = begin; step < end; step += kStep) {
      const int64_t step_end = std::min(step + kStep, end);
      for (int64_t j = step; j < step_end; ++j) {
        const float* u = upper_.data() + j * grid_.k;
        float* error = tile->error.data() + (j - begin) * kRows;
        const int64_t unit = factor_.order[static_cast<size_t>(j)] / grid_.unit_columns * kRows;
        loss += static_cast<double>(quantize_column_(
            tile->w.data() + j * kRows, tile->scale.data() + unit, tile->zero_point.data() + unit,
            set_, u[j], error, tile->codes.data() + j * kRows));
        for (int64_t c = j + 1; c < step_end; ++c) {
          float* w = tile->w.data() + c * kRows;
          for (int64_t r = 0; r < kRows; ++r) w[r] -= error[r] * u[c];
        }
      }
      Update(begin, step, step_end, end, tile);
    }
    Update(begin, begin, end, grid_.k, tile);
    return loss;
  }

  // W[end, stop) -= U[first, end) x [end, stop)^T E[first, end); the errors start at `begin`.
  void Update(int64_t begin, int64_t first, int64_t end, int64_t stop, SweepTile* tile) const {
    SgemmTile(true, false, stop - end, kRows, end - first, -1.0F,
              upper_.data() + first * grid_.k + end, grid_.k,
              tile->error.data() + (first - begin) * kRows, kRows, 1.0F,
              tile->w.data() + end * kRows, kRows, isa_);
  }

  void Store(const SweepTile& tile, int64_t first, uint8_t* codes) const {
    for (int64_t row = first; row < std::min(first + kRows, grid_.n); ++row) {
      uint8_t* out = codes + row * grid_.k;
      for (int64_t j = 0; j < grid_.k; ++j) {
        out[factor_.order[static_cast<size_t>(j)]] =
            tile.codes[static_cast<size_t>(j * kRows + row - first)];
      }
    }
  }

  const HessianFactor& factor_;
  std::span<const float> upper_;
  std::span<const float> w_;
  const ScaleGrid& grid_;
  const ScaleAndZeroPoint& scales_;
  CodeSet set_;
  decltype(&QuantizeColumn<CodeSet::Kind::kInt>) quantize_column_;
  int64_t block_size_;
  Isa isa_;
};

}  // namespace

Result<HessianFactor> FactorHessian(std::span<const float> h, int64_t k, const GptqOptions& options,
                                    const Context& context) {
  OCTAVO_CHECK(k > 0 && static_cast<int64_t>(h.size()) == k * k) << h.size() << " for k = " << k;
  if (!AllFinite(h)) return InvalidArgument("the Hessian holds NaN or Inf");
  HessianFactor factor;
  factor.k = k;
  factor.order = SweepOrder(h, k, options.order_by_diagonal);
  double trace = 0;
  for (int64_t j = 0; j < k; ++j) {
    const double diagonal = static_cast<double>(h[static_cast<size_t>(j * k + j)]);
    if (diagonal > 0) trace += diagonal;
    factor.dead_columns += diagonal <= 0;
  }
  const int64_t live = k - factor.dead_columns;
  const double mean = live > 0 ? trace / static_cast<double>(live) : 1.0;
  const ReversedHessian reversed{h, k, factor.order, mean};

  for (const bool in_float64 : {false, true}) {
    for (const double raise : {1.0, 10.0, 100.0}) {
      factor.dampening_frac = options.dampening_frac * raise;
      factor.upper = in_float64 ? FactorFloat64(reversed, factor.dampening_frac * mean)
                                : FactorFloat32(reversed, factor.dampening_frac * mean, context);
      if (factor.upper.empty()) continue;
      if (in_float64 || raise > 1)
        factor.note = fmt::format("the Hessian was not positive definite; solved with damping {}{}",
                                  factor.dampening_frac, in_float64 ? " in float64" : "");
      return factor;
    }
  }
  factor.fell_back = true;
  factor.note = fmt::format(
      "the Hessian is not positive definite, even with damping {} in float64: rounded to nearest",
      factor.dampening_frac);
  return factor;
}

Result<GptqResult> SolveGptq(const HessianFactor& factor, std::span<const float> w, int64_t n,
                             const QuantizationArgs& args, DType scale_dtype,
                             const LayerFacts& facts, const GptqOptions& options,
                             const Context& context) {
  if (options.block_size <= 0)
    return InvalidArgument(
        fmt::format("block_size is {}, expected a positive number", options.block_size));
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid, MakeScaleGrid(args, n, factor.k));
  OCTAVO_ASSIGN_OR_RETURN(const CodeSet set, CodesOf(args));
  OCTAVO_ASSIGN_OR_RETURN(ScaleAndZeroPoint scales,
                          ObserveScales(args, grid, w, scale_dtype, Arithmetic::kFloat32, facts));
  GptqResult result;
  if (!factor.fell_back) {
    result.weight.codes = Tensor(CodeDType(set), {n, factor.k});
    const Sweep sweep(factor, w, grid, scales, set, std::min(options.block_size, factor.k),
                      context.isa);
    const int64_t tiles = (n + kRows - 1) / kRows;
    std::vector<double> losses(static_cast<size_t>(tiles));
    auto* codes = reinterpret_cast<uint8_t*>(result.weight.codes.bytes());
    context.pool.ParallelFor(tiles, [&](int64_t tile) {
      losses[static_cast<size_t>(tile)] = sweep.Run(tile * kRows, codes);
    });
    result.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
  }
  if (factor.fell_back || !std::isfinite(*result.loss)) {
    result.note = factor.fell_back ? factor.note : "the sweep overflowed: rounded to nearest";
    result.fell_back = true;
    result.loss.reset();
    result.weight.codes = QuantizeWithScales(args, grid, w, scales, scale_dtype);
  }
  result.weight.scale = std::move(scales.scale);
  result.weight.zero_point = std::move(scales.zero_point);
  result.weight.global_scale = std::move(scales.global_scale);
  return result;
}

}  // namespace octavo
