#include "eval/python_random.h"

#include <bit>
#include <unordered_set>

#include "base/check.h"

namespace octavo {

// MT19937 and its initialization by an array: M. Matsumoto and T. Nishimura, "Mersenne Twister"
// (1998, and mt19937ar of 2002). How seeds, samples and choices use it: CPython's random module.

void PythonRandom::InitBySeed(uint32_t seed) {
  state_[0] = seed;
  for (size_t i = 1; i < kWords; ++i) {
    const uint32_t before = state_[i - 1];
    state_[i] = 1812433253U * (before ^ (before >> 30)) + static_cast<uint32_t>(i);
  }
  at_ = kWords;
}

PythonRandom::PythonRandom(uint64_t seed) {
  // The key is the seed in words of 32 bits, the lowest first, without leading zeros.
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  const size_t length = key[1] != 0 ? 2 : 1;
  InitBySeed(19650218U);
  size_t i = 1;
  size_t j = 0;
  const auto step = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (size_t k = 0; k < kWords; ++k) {
    const uint32_t before = state_[i - 1];
    state_[i] =
        (state_[i] ^ ((before ^ (before >> 30)) * 1664525U)) + key[j] + static_cast<uint32_t>(j);
    step();
    j = (j + 1) % length;
  }
  for (size_t k = 1; k < kWords; ++k) {
    const uint32_t before = state_[i - 1];
    state_[i] = (state_[i] ^ ((before ^ (before >> 30)) * 1566083941U)) - static_cast<uint32_t>(i);
    step();
  }
  state_[0] = 0x80000000U;
}

uint32_t PythonRandom::Next() {
  constexpr size_t kShift = 397;
  if (at_ == kWords) {
    for (size_t i = 0; i < kWords; ++i) {
      const uint32_t mixed = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7FFFFFFFU);
      state_[i] = state_[(i + kShift) % kWords] ^ (mixed >> 1) ^ ((mixed & 1) * 0x9908B0DFU);
    }
    at_ = 0;
  }
  uint32_t word = state_[at_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9D2C5680U;
  word ^= (word << 15) & 0xEFC60000U;
  return word ^ (word >> 18);
}

double PythonRandom::Random() {
  const uint32_t high = Next() >> 5;
  const uint32_t low = Next() >> 6;
  return (static_cast<double>(high) * 67108864.0 + static_cast<double>(low)) / 9007199254740992.0;
}

uint32_t PythonRandom::GetRandBits(int count) {
  OCTAVO_CHECK(count >= 1 && count <= 32) << count;
  return Next() >> (32 - count);
}

int64_t PythonRandom::Below(int64_t limit) {
  OCTAVO_CHECK(limit >= 1 && limit <= int64_t{0xFFFFFFFF}) << limit;
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(limit)));
  int64_t drawn = GetRandBits(bits);
  while (drawn >= limit) drawn = GetRandBits(bits);
  return drawn;
}

std::vector<int64_t> PythonRandom::Sample(int64_t population, int64_t count) {
  OCTAVO_CHECK(count >= 0 && count <= population) << count << " of " << population;
  // Python draws from a list where that is smaller than the set it would need.
  int64_t set_size = 21;
  if (count > 5) {
    int64_t table = 4;  // 4 to the power ceil(log_4(3 count))
    while (table < 3 * count) table *= 4;
    set_size += table;
  }
  std::vector<int64_t> sample;
  if (population <= set_size) {
    std::vector<int64_t> pool(static_cast<size_t>(population));
    for (int64_t i = 0; i < population; ++i) pool[static_cast<size_t>(i)] = i;
    for (int64_t i = 0; i < count; ++i) {
      const auto drawn = static_cast<size_t>(Below(population - i));
      sample.push_back(pool[drawn]);
      pool[drawn] = pool[static_cast<size_t>(population - i - 1)];
    }
    return sample;
  }
  std::unordered_set<int64_t> selected;
  while (std::ssize(sample) < count) {
    const int64_t drawn = Below(population);
    if (selected.insert(drawn).second) sample.push_back(drawn);
  }
  return sample;
}

int64_t PythonRandom::Choice(int64_t population) {
  return static_cast<int64_t>(Random() * static_cast<double>(population));
}

}  // namespace octavo
