// SmoothQuant's scales: how much of each channel's range moves from the activations into the
// weights (quantization 5.3.2).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace octavo {

enum class SmoothAlgorithm : uint8_t { kSmoothQuant, kLogEqualization };

// s [k], by which the norm's output is divided and the columns of the weights are multiplied, all
// in float32. With a_j = maximum_j - minimum_j and w_j = 2 max |W_:,j| over all `weights` (each
// [n_i, k]):
//   smoothquant:      s_j = a_j^strength / w_j^(1 - strength), and a_j where w_j = 0
//   log_equalization: s_j = a_j / log2(2 + a_j)
// at least 1e-5; a channel that never moved (a_j = 0) is left alone, s_j = 1, where the library's
// 1e-5 would blow up the norm's weight. InvalidArgument when a range, a weight or a scale is not
// finite, or the ranges are empty (no token was seen).
Result<std::vector<float>> SmoothScales(std::span<const float> minimum,
                                        std::span<const float> maximum,
                                        std::span<const std::span<const float>> weights,
                                        double strength, SmoothAlgorithm algorithm);

}  // namespace octavo
