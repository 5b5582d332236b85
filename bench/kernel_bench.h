// Kernels measured against the machine's roofs and against oneDNN.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "bench/kernel_case.h"
#include "bench/roofs.h"

namespace octavo {

struct KernelResult {
  KernelCase kernel_case;
  double seconds = 0;     // of a call
  std::string roof;       // "int8", "bf16", "f32" or "memory": which limits first
  double roof_share = 0;  // the time that the limit allows, over the time taken
  std::optional<double> rival_seconds;
};

// Every case of every family in whose "kernel shape" the regular expression `filter` is found.
// InvalidArgument where it is wrong.
Result<std::vector<KernelCase>> SelectCases(const CaseOptions& options, std::string_view filter);

// Spends `seconds` on each contender.
KernelResult MeasureKernel(const KernelCase& kernel_case, const ArithmeticRoofs& arithmetic,
                           ReadRates& read_rates, double seconds, const Context& context);

}  // namespace octavo
