#include "bench/kernel_bench.h"

#include <functional>

#include "bench/timing.h"
#include "text/regex.h"

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
      case RoofKind::kInt8:
        return {"int8", arithmetic.int8};
      case RoofKind::kBf16:
        return {"bf16", arithmetic.bf16};
      case RoofKind::kF32:
        break;
    }
    return {"f32", arithmetic.f32};
  }();
  const double memory = kernel_case.bytes / read_rates.BytesPerSecond(kernel_case.footprint);
  const double operations = rate > 0 ? kernel_case.operations / rate : 0;
  return operations > memory ? Limit{name, operations} : Limit{"memory", memory};
}

}  // namespace

Result<std::vector<KernelCase>> SelectCases(const CaseOptions& options, std::string_view filter) {
  const Result<Regex> pattern = Regex::Compile(filter);
  if (!pattern.ok()) return InvalidArgument("the filter: " + pattern.status().message());
  Regex::Searcher searcher(*pattern);
  std::vector<ByteRange> found;
  std::vector<KernelCase> cases;
#define OCTAVO_BENCH_FAMILY(function) function(options, &cases);
#include "bench/families.inc"
#undef OCTAVO_BENCH_FAMILY
  std::vector<KernelCase> selected;
  for (KernelCase& one : cases) {
    OCTAVO_RETURN_IF_ERROR(searcher.FindAll(one.kernel + " " + one.shape, found));
    if (!found.empty()) selected.push_back(std::move(one));
  }
  return selected;
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
