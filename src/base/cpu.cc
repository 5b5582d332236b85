#include "base/cpu.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace octavo {

namespace {

constexpr Isa kAll[] = {Isa::kRef, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni};

}  // namespace

std::string_view IsaName(Isa isa) {
  static constexpr std::string_view kNames[] = {"ref", "avx2", "avx512", "avx512_vnni"};
  return kNames[static_cast<int>(isa)];
}

Isa DetectIsa() {
#ifdef OCTAVO_SIMD
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return Isa::kRef;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return Isa::kAvx2;
  }
  return __builtin_cpu_supports("avx512vnni") ? Isa::kAvx512Vnni : Isa::kAvx512;
#else
  return Isa::kRef;
#endif
}

Result<Isa> SelectIsa() {
  const Isa best = DetectIsa();
  const char* wanted = std::getenv("OCTAVO_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  for (Isa isa : kAll) {
    if (IsaName(isa) != wanted) continue;
    if (isa <= best) return isa;
    return Unsupported("OCTAVO_ISA=" + std::string(wanted) +
                       " asks for more than this machine and build have (" +
                       std::string(IsaName(best)) + ")");
  }
  return InvalidArgument("OCTAVO_ISA=" + std::string(wanted) +
                         " is unknown; it may be ref, avx2, avx512 or avx512_vnni");
}

std::vector<Isa> IsasUpTo(Isa best) {
  std::vector<Isa> isas;
  for (Isa isa : kAll) {
    if (isa <= best) isas.push_back(isa);
  }
  return isas;
}

std::string CpuModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t name = line.find_first_not_of(" \t", line.find(':') + 1);
    if (name != std::string::npos) return line.substr(name);
  }
  return "unknown processor";
}

}  // namespace octavo
