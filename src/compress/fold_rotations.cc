#include "compress/fold_rotations.h"

#include <algorithm>
#include <cstring>

#include "tensor/convert.h"

namespace octavo {

namespace {

// Rows, or columns, that are rotated together, side by side.
constexpr int64_t kStrip = 16;

// x [length, width].
void ApplySteps(const std::vector<RotationStep>& steps, int64_t length, int64_t width, double* x) {
  std::vector<double> scratch;
  for (const RotationStep& step : steps) {
    const int64_t n = step.rotation->size();
    OCTAVO_CHECK(length % n == 0) << length << " in pieces of " << n;
    scratch.resize(static_cast<size_t>(n * width));
    for (int64_t first = 0; first < length; first += n)
      step.rotation->Multiply(step.transpose, x + first * width, width, scratch.data());
  }
}

// Elements [first, first + count) of a view.
TensorView Piece(const TensorView& view, int64_t first, int64_t count) {
  return {
      .dtype = view.dtype, .shape = {count}, .bytes = view.bytes + first * DTypeBytes(view.dtype)};
}

// The first error of tiles that run side by side.
Status FirstError(const std::vector<Status>& statuses) {
  const auto bad = std::find_if(statuses.begin(), statuses.end(),
                                [](const Status& status) { return !status.ok(); });
  return bad == statuses.end() ? OkStatus() : *bad;
}

// Rows [first, first + count) of the weight as a strip [k, count]: with gains, rotated.
Result<std::vector<double>> RotatedRows(const TensorView& weight, std::span<const float> gains,
                                        const std::vector<RotationStep>& steps, int64_t first,
                                        int64_t count) {
  const int64_t k = weight.shape[1];
  std::vector<float> rows(static_cast<size_t>(count * k));
  OCTAVO_RETURN_IF_ERROR(ToFloat(Piece(weight, first * k, count * k), rows));
  std::vector<double> strip(rows.size());
  for (int64_t j = 0; j < k; ++j) {
    const double gain = gains.empty() ? 1.0 : static_cast<double>(gains[static_cast<size_t>(j)]);
    for (int64_t i = 0; i < count; ++i) {
      strip[static_cast<size_t>(j * count + i)] =
          gain * static_cast<double>(rows[static_cast<size_t>(i * k + j)]);
    }
  }
  ApplySteps(steps, k, count, strip.data());
  return strip;
}

// Turns tiles of rows into what `store` makes of them: (first row, count, strip [k, count]).
template <typename Store>
Status ForEachRowStrip(const TensorView& weight, std::span<const float> gains,
                       const std::vector<RotationStep>& steps, const Context& context,
                       const Store& store) {
  const int64_t n = weight.shape[0];
  const int64_t tiles = (n + kStrip - 1) / kStrip;
  std::vector<Status> statuses(static_cast<size_t>(tiles));
  context.pool.ParallelFor(tiles, [&](int64_t tile) {
    const int64_t first = tile * kStrip;
    const int64_t count = std::min(kStrip, n - first);
    const auto strip = RotatedRows(weight, gains, steps, first, count);
    statuses[static_cast<size_t>(tile)] =
        strip.ok() ? store(first, count, std::span<const double>(*strip)) : strip.status();
  });
  return FirstError(statuses);
}

// Rows from `first` on of a tensor [n, k], rounded to its dtype.
Status StoreRows(std::span<const float> rows, int64_t first, Tensor* tensor) {
  const int64_t k = tensor->dim(1);
  const auto count = std::ssize(rows) / k;
  OCTAVO_ASSIGN_OR_RETURN(const Tensor stored, FromFloat(rows, tensor->dtype(), {count, k}));
  std::memcpy(tensor->bytes() + first * k * DTypeBytes(tensor->dtype()), stored.view().bytes,
              static_cast<size_t>(stored.num_bytes()));
  return OkStatus();
}

// A strip [k, count] as rows [count, k].
template <typename T>
std::vector<T> RowsOf(std::span<const double> strip, int64_t count) {
  const auto k = std::ssize(strip) / count;
  std::vector<T> rows(strip.size());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      rows[static_cast<size_t>(i * k + j)] =
          static_cast<T>(strip[static_cast<size_t>(j * count + i)]);
    }
  }
  return rows;
}

// matrix [n, k], each column rotated.
void RotateColumns(const std::vector<RotationStep>& steps, int64_t n, int64_t k,
                   const Context& context, std::vector<double>* matrix) {
  context.pool.ParallelFor((k + kStrip - 1) / kStrip, [&](int64_t tile) {
    const int64_t first = tile * kStrip;
    const int64_t count = std::min(kStrip, k - first);
    double* columns = matrix->data() + first;
    std::vector<double> strip(static_cast<size_t>(n * count));
    for (int64_t i = 0; i < n; ++i) std::copy_n(columns + i * k, count, strip.data() + i * count);
    ApplySteps(steps, n, count, strip.data());
    for (int64_t i = 0; i < n; ++i) std::copy_n(strip.data() + i * count, count, columns + i * k);
  });
}

}  // namespace

Result<Tensor> RotateWeight(const TensorView& weight, std::span<const float> gains,
                            const WeightRotation& rotation, DType dtype, const Context& context) {
  const int64_t n = weight.shape[0];
  const int64_t k = weight.shape[1];
  Tensor rotated(dtype, weight.shape);
  if (rotation.columns.empty()) {
    OCTAVO_RETURN_IF_ERROR(
        ForEachRowStrip(weight, gains, rotation.rows, context,
                        [&](int64_t first, int64_t count, std::span<const double> strip) {
                          return StoreRows(RowsOf<float>(strip, count), first, &rotated);
                        }));
    return rotated;
  }
  // The rotated rows are kept in float64 until the columns are rotated too.
  std::vector<double> matrix(static_cast<size_t>(n * k));
  OCTAVO_RETURN_IF_ERROR(
      ForEachRowStrip(weight, gains, rotation.rows, context,
                      [&](int64_t first, int64_t count, std::span<const double> strip) {
                        const std::vector<double> rows = RowsOf<double>(strip, count);
                        std::copy(rows.begin(), rows.end(), matrix.begin() + first * k);
                        return OkStatus();
                      }));
  RotateColumns(rotation.columns, n, k, context, &matrix);
  for (int64_t first = 0; first < n; first += kStrip) {
    const int64_t count = std::min(kStrip, n - first);
    const auto begin = matrix.begin() + first * k;
    OCTAVO_RETURN_IF_ERROR(
        StoreRows(std::vector<float>(begin, begin + count * k), first, &rotated));
  }
  return rotated;
}

Result<Tensor> RotateBias(const TensorView& bias, const std::vector<RotationStep>& columns) {
  OCTAVO_ASSIGN_OR_RETURN(const Tensor values, ToFloatTensor(bias));
  const auto floats = values.data<float>();
  std::vector<double> x(floats.begin(), floats.end());
  ApplySteps(columns, bias.elements(), 1, x.data());
  return FromFloat(std::vector<float>(x.begin(), x.end()), bias.dtype, bias.shape);
}

}  // namespace octavo
