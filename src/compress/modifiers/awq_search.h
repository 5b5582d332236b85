// AWQ's search: by which scales of the input channels rounding costs the layers behind them least
// (quantization 5.4).
#pragma once

#include <cstdint>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/block_work.h"

namespace octavo {

enum class DuoScaling : uint8_t { kOff, kOn, kBoth };

struct AwqOptions {
  DuoScaling duo_scaling = DuoScaling::kOn;
  int64_t n_grid = 20;
};

struct AwqScales {
  std::vector<float> scales;  // [k]; all 1 where nothing was better
  double error_before = 0;    // ||X (W - Q(W))^T||^2 over the group's quantized layers
  double error = 0;           // the same with the scales
};

// With x_j the mean magnitude of input j, and w_j the mean over all rows of |W_rj| / (the largest
// magnitude in its quantization unit + 1e-6), candidates are s = x^r / (w^(1 - r) + 1e-4) (duo) or
// x^r, at least 1e-4, divided by sqrt(max s * min s), over a grid of r. The error of a candidate is
// that of the outputs of the layers themselves, from the Hessian: where the library replays the
// attention or the MLP that the layers are in for each candidate, this needs no forward pass. The
// group needs a Hessian and mean magnitudes; some layer must be quantized. InvalidArgument when no
// candidate has a finite error.
Result<AwqScales> SearchAwqScales(const GroupWork& group, const AwqOptions& options,
                                  const Context& context);

}  // namespace octavo
