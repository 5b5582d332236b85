#include "base/usage.h"

#include <malloc.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

namespace octavo {

namespace {

// A line of /proc/self/status in bytes ("VmHWM:   123 kB"), or 0.
int64_t StatusBytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  }
  return 0;
}

}  // namespace

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t PeakRssBytes() {
  return StatusBytes("VmHWM:");
}
int64_t CurrentRssBytes() {
  return StatusBytes("VmRSS:");
}

void ResetPeakRss() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void ReturnFreedMemory() {
  constexpr int kLarge = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLarge);
}

}  // namespace octavo
