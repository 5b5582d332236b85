// RowTransform: rows times an orthogonal matrix, by blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/context.h"
#include "tensor/tensor.h"

namespace octavo {

// x -> x diag(M, M, ...): rows are multiplied by the block M [n, n], cut in pieces of n.
class RowTransform {
 public:
  // M = scale * matrix, or its transpose; matrix [n, n] F32. One that is diag(signs) (core x S), S
  // Sylvester's Hadamard matrix of 2 or more and x Kronecker's product, is recognised and applied
  // in n (log s + core's size) steps: the Hadamard matrices of the library, of which the core is
  // the part that is no power of two.
  RowTransform(const Tensor& matrix, float scale, bool transpose);
  // M = H / sqrt(n), H Sylvester's Hadamard matrix; n is a power of two.
  explicit RowTransform(int64_t n);

  int64_t size() const { return n_; }
  bool is_fast() const { return matrix_.empty(); }

  // y [m, k], ldy floats from row to row; n divides k. y may not overlap x.
  void Apply(const float* x, int64_t ldx, int64_t m, int64_t k, float* y, int64_t ldy,
             const Context& context) const;
  void ApplyInPlace(float* x, int64_t ldx, int64_t m, int64_t k, const Context& context) const;

 private:
  void ApplyWithCore(const float* x, int64_t ldx, int64_t m, int64_t k, float* y, int64_t ldy,
                     const Context& context) const;

  int64_t n_;
  float scale_;
  std::vector<float> signs_;  // [n], of the rows of M, or of its columns; empty: all 1
  bool signs_after_ = false;
  Tensor core_;    // F32, M's core transposed; empty: [[1]]
  Tensor matrix_;  // F32 [n, n], M transposed; empty for Hadamard matrices
};

using RowTransforms = std::vector<std::shared_ptr<const RowTransform>>;

}  // namespace octavo
