// What a process has used: processor time and memory, as the operating system counts them.
#pragma once

#include <cstdint>

namespace octavo {

double CpuSeconds();        // user and system time of all threads
int64_t PeakRssBytes();     // largest resident set so far
int64_t CurrentRssBytes();  // resident set now

// Largest resident set since the last call of ResetPeakRss; where the system cannot reset it, since
// the start.
void ResetPeakRss();

}  // namespace octavo
