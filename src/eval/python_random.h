// Python's random.Random for integer seeds: the same numbers, samples and choices, so that the
// examples of a prompt and bootstrapped errors are those of lm-evaluation-harness.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo {

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  double Random();                  // [0, 1), 53 bits
  uint32_t GetRandBits(int count);  // 1 <= count <= 32
  // Uniform in [0, limit), as random._randbelow draws it; 1 <= limit < 2^32.
  int64_t Below(int64_t limit);
  // random.sample(range(population), count): that many different indices; count <= population.
  std::vector<int64_t> Sample(int64_t population, int64_t count);
  // One draw of random.choices(range(population), k=...).
  int64_t Choice(int64_t population);

 private:
  static constexpr size_t kWords = 624;
  void InitBySeed(uint32_t seed);
  uint32_t Next();  // 32 bits of MT19937

  std::array<uint32_t, kWords> state_;
  size_t at_ = kWords;
};

}  // namespace octavo
