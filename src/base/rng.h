// Seeded random numbers that are the same on every machine: the standard fixes mt19937_64, but not
// its distributions.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace octavo {

class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}

  // Uniform in [0, 1), 53 bits.
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  // Uniform in [0, n), n >= 1, without bias.
  uint64_t Below(uint64_t n) {
    const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t draw = engine_();
    while (draw >= limit) draw = engine_();
    return draw % n;
  }

  // A random order of 0 .. n-1 (Fisher-Yates).
  std::vector<int64_t> Permutation(int64_t n) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Below(i)]);
    return order;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace octavo
