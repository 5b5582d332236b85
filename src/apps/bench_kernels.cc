#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "base/json.h"
#include "bench/kernel_bench.h"

namespace octavo {

namespace {

struct Options {
  std::string filter;
  double seconds = 0.3;
  uint64_t memory = uint64_t{1} << 30;
  bool list = false;
  bool json = false;
};

constexpr double kGiga = 1e9;

// "1.23 us", "45.6 ms".
std::string TimeString(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  return fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string SizeString(int64_t bytes) {
  if (bytes >= int64_t{1} << 20) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

std::string RateString(const KernelResult& result) {
  const KernelCase& kernel_case = result.kernel_case;
  if (result.roof == "memory") {
    return fmt::format("{:.1f} GB/s", kernel_case.bytes / result.seconds / kGiga);
  }
  return fmt::format("{:.0f} GOP/s", kernel_case.operations / result.seconds / kGiga);
}

constexpr std::string_view kRow =
    "{:<26} {:<44} {:<12} {:>10} {:>12} {:>5} % {:<7} {:<6} {:>10} {:>6}\n";

void PrintHeader() {
  Print(fmt::format("\n{:<26} {:<44} {:<12} {:>10} {:>12} {:<15} {:<17} {:>6}\n", "kernel", "shape",
                    "isa", "time", "rate", " of its roof", "rival", "ratio"));
}

void PrintRow(const KernelResult& result) {
  const std::optional<double>& rival = result.rival_seconds;
  Print(fmt::format(fmt::runtime(kRow), result.kernel_case.kernel, result.kernel_case.shape,
                    IsaName(result.kernel_case.isa), TimeString(result.seconds), RateString(result),
                    fmt::format("{:.0f}", 100 * result.roof_share), result.roof,
                    rival ? result.kernel_case.rival : "-", rival ? TimeString(*rival) : "",
                    rival ? fmt::format("{:.2f}", *rival / result.seconds) : ""));
}

void PrintRoofs(const ArithmeticRoofs& roofs, const Context& context) {
  Print(fmt::format(
      "{}, {}, {} thread{}\nroofs: {:.0f} GOP/s int8, {:.0f} GFLOP/s bf16, {:.0f} GFLOP/s f32\n",
      CpuModelName(), IsaName(context.isa), context.pool.num_threads(),
      context.pool.num_threads() == 1 ? "" : "s", roofs.int8 / kGiga, roofs.bf16 / kGiga,
      roofs.f32 / kGiga));
}

Value ToJson(const KernelResult& result) {
  const KernelCase& kernel_case = result.kernel_case;
  Value json = Value::MakeObject();
  json.Set("kernel", kernel_case.kernel);
  json.Set("shape", kernel_case.shape);
  json.Set("isa", IsaName(kernel_case.isa));
  json.Set("seconds", result.seconds);
  json.Set("operations", kernel_case.operations);
  json.Set("bytes", kernel_case.bytes);
  json.Set("footprint", kernel_case.footprint);
  json.Set("roof", result.roof);
  json.Set("roof_share", result.roof_share);
  if (result.rival_seconds) {
    json.Set("rival", kernel_case.rival);
    json.Set("rival_seconds", *result.rival_seconds);
    json.Set("rival_ratio", *result.rival_seconds / result.seconds);
  }
  return json;
}

Value MachineJson(const ArithmeticRoofs& roofs, const ReadRates& read_rates,
                  const Context& context) {
  Value rates = Value::MakeArray();
  for (const auto& [footprint, rate] : read_rates.measured()) {
    Value one = Value::MakeObject();
    one.Set("footprint", footprint);
    one.Set("bytes_per_second", rate);
    rates.as_array().push_back(std::move(one));
  }
  Value json = Value::MakeObject();
  json.Set("cpu", CpuModelName());
  json.Set("isa", IsaName(context.isa));
  json.Set("threads", context.pool.num_threads());
  json.Set("int8_ops", roofs.int8);
  json.Set("bf16_ops", roofs.bf16);
  json.Set("f32_ops", roofs.f32);
  json.Set("read", std::move(rates));
  return json;
}

Status Run(const Options& options, const Context& context) {
  const CaseOptions case_options{
      .isa = context.isa, .pool = context.pool, .memory = static_cast<int64_t>(options.memory)};
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<KernelCase> cases,
                          SelectCases(case_options, options.filter));
  if (cases.empty()) {
    return InvalidArgument(
        fmt::format("no kernel and shape matches \"{}\"; octavo bench kernels --list shows all",
                    options.filter));
  }
  if (options.list) {
    for (const KernelCase& one : cases) Print(fmt::format("{} {}\n", one.kernel, one.shape));
    return OkStatus();
  }
  const ArithmeticRoofs arithmetic = MeasureArithmetic(options.seconds, context);
  ReadRates read_rates(options.seconds, context);
  if (!options.json) {
    PrintRoofs(arithmetic, context);
    PrintHeader();
  }
  Value rows = Value::MakeArray();
  for (const KernelCase& one : cases) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    const KernelResult result =
        MeasureKernel(one, arithmetic, read_rates, options.seconds, context);
    if (options.json) {
      rows.as_array().push_back(ToJson(result));
    } else {
      PrintRow(result);
    }
  }
  if (options.json) {
    Value json = Value::MakeObject();
    json.Set("machine", MachineJson(arithmetic, read_rates, context));
    json.Set("kernels", std::move(rows));
    Print(WriteJson(json, {.indent = 2}) + "\n");
    return OkStatus();
  }
  Print("\nread, cycling over:");
  for (const auto& [footprint, rate] : read_rates.measured()) {
    Print(fmt::format("  {} {:.1f} GB/s", SizeString(footprint), rate / kGiga));
  }
  Print("\n");
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description(
      "Each kernel on shapes of real models, as a share of what this machine can do, and beside "
      "oneDNN");
  app.footer(
      "First the machine: operations a second of its best instructions, and bytes a second when "
      "reading goes\nthrough as much memory as the kernel does. A kernel's roof is whichever of "
      "the two takes longer for its\nwork; \"of its roof\" is that time over the time taken. "
      "The rival does the same work, in turns: oneDNN with\nweights packed beforehand, for weights "
      "of "
      "4 or 8 bits with float activations the faster of its bf16 and f32\nmatmul; for int4 x int8 "
      "\"int8\", the same of Octavo with weights of 8 bits. A ratio above 1 says that the rival "
      "takes\nlonger. With up to 32 rows, matmuls read weights from memory, as in a model.\n\n"
      "Examples:\n"
      "  octavo bench kernels --filter matmul_int8\n"
      "  octavo bench kernels --filter \"llama-3.1-8b.* m (1|4)$\"\n"
      "  OCTAVO_ISA=avx2 octavo bench kernels --filter smollm2 --json > avx2.json");
  auto options = std::make_shared<Options>();
  app.add_option("--filter", options->filter,
                 "Only where this regular expression is found in \"kernel shape\"");
  app.add_option("--seconds", options->seconds, "Measure each kernel, and each roof, for so long")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 3600.0));
  app.add_option("--memory", options->memory,
                 "Distinct weights that matmuls of few rows go through; 1GiB if not given")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_flag("--list", options->list, "Only show what would be measured");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kBenchKernelsCommand;
const Command kBenchKernelsCommand = {"kernels", Add};

}  // namespace octavo
