// Hadamard matrices of sizes that are no powers of two, by Paley's constructions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace octavo {

// A square matrix of 1 and -1, row-major, whose rows are orthogonal.
struct HadamardMatrix {
  int64_t n = 0;
  std::vector<int8_t> elements;
};

// A Hadamard matrix of which one of size n is made by doubling, the smallest that there is: 1 for
// powers of two, 12 for 384. Paley I gives q + 1 for prime powers q = 3 modulo 4, Paley II
// 2 (q + 1) for q = 1 modulo 4; prime powers are primes, their squares and cubes. None: no such
// size up to 1024 is known here.
std::optional<HadamardMatrix> HadamardCore(int64_t n);

}  // namespace octavo
