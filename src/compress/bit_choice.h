// Choosing one of several ways to quantize each unit of layers: the least loss within a size, or
// the least size within a loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace octavo {

// One way to quantize a unit.
struct BitOption {
  int64_t bits = 0;  // as stored, of the whole unit
  double kl = 0;     // what the model loses when this unit alone is quantized so, nats
};

struct BitChoice {
  std::vector<size_t> options;  // of each unit
  int64_t bits = 0;             // sums over the units: losses are taken to add up
  double kl = 0;
};

// units[u] are the options of unit u, at least one each. InvalidArgument, with the bounds that can
// be met, when none can. A dynamic program over the units whose states are pairs of size and loss
// that no other beats in both: exact, unless there are more than 2^15 of them; then states whose
// sizes differ by less than 2^-15 of the range count as one, the one with the least loss.
Result<BitChoice> ChooseLeastLoss(std::span<const std::vector<BitOption>> units, int64_t max_bits);
Result<BitChoice> ChooseLeastBits(std::span<const std::vector<BitOption>> units, double max_kl);

}  // namespace octavo
