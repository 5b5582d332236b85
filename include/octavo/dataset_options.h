// DatasetOptions: how much of a file of calibration data is used.
#pragma once

#include <cstdint>

namespace octavo {

struct DatasetOptions {
  int64_t num_samples = 512;
  int64_t max_length = 2048;  // tokens; longer rows are cut, shorter ones not padded
  bool shuffle = true;  // which rows are taken, and their order; off: the first ones, in order
  uint64_t seed = 42;
  int64_t skip = 0;  // rows that come first in that order and are left out
};

}  // namespace octavo
