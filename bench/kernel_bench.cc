#include "bench/kernel_bench.h"

#include <functional>

#include "bench/timing.h"

namespace octavo {

namespace {

struct Limit {
  const char* name;
  double seconds;
};

// The later of: all operations at their roof, all bytes at theirs.
Limit NearestRoof(const KernelCase& kernel_case, const ArithmeticRoofs& arithmetic,
                  ReadRates& read_rates) {
  const auto [name, rate] = [&]() -> std::pair<const char*, double> {
    switch (kernel_case.arithmetic) {
      case Arithmetic::kInt8:
        return {"int8", arithmetic.int8};
      case Arithmetic::kBf16:
        return {"bf16", arithmetic.bf16};
      case Arithmetic::kF32:
        break;
    }
    return {"f32", arithmetic.f32};
  }();
  const double memory = kernel_case.bytes / read_rates.BytesPerSecond(kernel_case.footprint);
  const double operations = rate > 0 ? kernel_case.operations / rate : 0;
  return operations > memory ? Limit{name, operations} : Limit{"memory", memory};
}

}  // namespace

std::vector<KernelCase> SelectCases(const CaseOptions& options, const std::string& filter) {
  std::vector<KernelCase> cases;
#define OCTAVO_BENCH_FAMILY(function) function(options, &cases);
#include "bench/families.inc"
#undef OCTAVO_BENCH_FAMILY
  std::erase_if(cases, [&](const KernelCase& kernel_case) {
    return (kernel_case.kernel + " " + kernel_case.shape).find(filter) == std::string::npos;
  });
  return cases;
}

KernelResult MeasureKernel(const KernelCase& kernel_case, const ArithmeticRoofs& arithmetic,
                           ReadRates& read_rates, double seconds, const Context& context) {
  const Limit limit = NearestRoof(kernel_case, arithmetic, read_rates);
  const Contenders contenders = kernel_case.prepare();
  std::vector<std::function<void()>> runs = {contenders.kernel};
  if (contenders.rival) runs.push_back(contenders.rival);
  const std::vector<double> times = MeasureInTurns(runs, seconds, context);
  KernelResult result{.kernel_case = kernel_case,
                      .seconds = times[0],
                      .roof = limit.name,
                      .roof_share = limit.seconds / times[0],
                      .rival_seconds = {}};
  if (times.size() > 1) result.rival_seconds = times[1];
  return result;
}

}  // namespace octavo
