// GPTQ's numeric core: a Hessian factored once for all layers that share an input, and codes that
// compensate each column's rounding error in the columns after it (quantization 5.2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "quant/quantize_weight.h"
#include "tensor/tensor.h"

namespace octavo {

struct GptqOptions {
  int64_t block_size = 128;       // columns between two updates of all the columns behind them
  double dampening_frac = 0.01;   // of the mean of the diagonal, added to the diagonal
  bool order_by_diagonal = true;  // actorder "static": columns with large inputs first
};

// U with H^-1 = U^T U, upper triangular, of the Hessian with its columns in `order`.
struct HessianFactor {
  int64_t k = 0;
  std::vector<int64_t> order;  // position in the sweep -> column
  Tensor upper;                // F32 [k, k]; empty when fell_back
  double dampening_frac = 0;   // what it took
  int64_t dead_columns = 0;    // inputs that were always zero
  // No factor was found at all: Solve rounds to nearest.
  bool fell_back = false;
  // What was out of the ordinary, for the report; "" when nothing was.
  std::string note;
};

// h [k, k]: sum over tokens of c x^T x, symmetric, for any c > 0. A Hessian that is not positive
// definite is damped ten times more, twice, then all three in float64, then given up (fell_back).
// Dead columns (zero diagonal) couple to nothing and are rounded to nearest; the library sets their
// weights to zero, which calibration cannot tell from this, but other inputs can.
// InvalidArgument when h holds NaN or Inf.
Result<HessianFactor> FactorHessian(std::span<const float> h, int64_t k, const GptqOptions& options,
                                    const Context& context);

struct GptqResult {
  QuantizedWeight weight;
  // What the sweep adds up: half the sum of ((w - q) / U_jj)^2. With h = sum of 2 x^T x it is about
  // ||X (W - Wq)^T||^2, and the library's figure times its number of samples. None when rounded to
  // nearest.
  std::optional<double> loss;
  bool fell_back = false;  // rounded to nearest, as the factor's note or this one says why
  std::string note;
};

// w [n, k] float32. Scales are those of rounding to nearest, from the original weight; codes are
// found against the scale as it is stored in `scale_dtype`, and are the codes to save. Rows are
// independent and cut into fixed tiles.
Result<GptqResult> SolveGptq(const HessianFactor& factor, std::span<const float> w, int64_t n,
                             const QuantizationArgs& args, DType scale_dtype,
                             const LayerFacts& facts, const GptqOptions& options,
                             const Context& context);

}  // namespace octavo
