// What all kernel families share: the record of a kernel, its exactness class, and the choice by
// instruction set.
#pragma once

#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/cpu.h"

namespace octavo {

// What a kernel promises about its results; tests hold it to that.
enum class Exactness : uint8_t {
  kExact,    // bit-equal on every instruction set
  kOrdered,  // floating point in the order of the reference: bit-equal too
  kBounded,  // floating point in an order of its own: within a bound of the exact result
};

// A kernel is a single-threaded function over a range; the family's .cc file splits the work.
template <typename Function>
struct Kernel {
  Isa isa;
  const char* name;
  Function* run;
  Exactness exactness;
};

// The first kernel of a list (best first, portable last) that needs no more than `isa`.
template <typename Record>
const Record& BestKernel(std::span<const Record> kernels, Isa isa) {
  for (const Record& kernel : kernels) {
    if (kernel.isa <= isa) return kernel;
  }
  OCTAVO_CHECK(false) << "a family without a portable kernel";
  return kernels.back();
}

}  // namespace octavo
