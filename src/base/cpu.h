// Which instruction set the kernels may use: what the processor has, what was built, and the user's
// cap.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace octavo {

// Sets of instructions a kernel may need, weakest first: a processor that has one has all before
// it.
enum class Isa {
  kRef,         // portable C++
  kAvx2,        // AVX2, FMA, F16C
  kAvx512,      // AVX-512 F, BW, DQ, VL
  kAvx512Vnni,  // and VNNI
};

// "ref", "avx2", "avx512", "avx512_vnni".
std::string_view IsaName(Isa isa);

// The best set that this processor has and this build contains.
Isa DetectIsa();

// DetectIsa(), capped by the environment variable OCTAVO_ISA. A value that is unknown, or that the
// machine or the build lacks, is an error: a forced instruction set that silently is another one
// would make every measurement a lie.
Result<Isa> SelectIsa();

// The sets from kRef up to `best`, for tests that run each.
std::vector<Isa> IsasUpTo(Isa best);

// "Intel(R) Xeon(R) Processor", or "unknown processor".
std::string CpuModelName();

}  // namespace octavo
