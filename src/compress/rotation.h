// Rotation: an orthogonal matrix that weights are multiplied by before they are quantized, in
// float64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "quant/transforms.h"
#include "tensor/tensor.h"

namespace octavo {

// M [n, n] = diag(signs) (core x S) / sqrt(n), x Kronecker's product, S Sylvester's Hadamard matrix
// of n / core size. A random matrix is all core, and has no signs.
class Rotation {
 public:
  // hadamard: core 1, no signs; random-hadamard: random signs; random-matrix: that of a uniformly
  // random rotation. `group`, n and the seed decide what is random. InvalidArgument for a size that
  // has no such matrix, with one that would fit.
  static Result<Rotation> Make(TransformType type, std::string_view group, int64_t n,
                               uint64_t seed);

  int64_t size() const { return n_; }

  // x <- M^T x, or M x: x [n, width] row-major. scratch [n, width].
  void Multiply(bool transpose, double* x, int64_t width, double* scratch) const;

  // As a checkpoint stores it, [n, n] of that dtype (F64 or F32): Hadamard matrices as 1 and -1,
  // which are sqrt(n) M.
  Tensor Stored(DType dtype) const;

 private:
  int64_t n_ = 1;
  int64_t core_size_ = 1;
  std::vector<double> core_;   // [core size, core size]
  std::vector<double> signs_;  // [n], or empty: all 1
  double scale_ = 1;           // of core x S
};

}  // namespace octavo
