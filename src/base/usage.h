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

// From now on large blocks go back to the system when they are freed. By itself the C library
// begins to keep blocks of the sizes it sees, and where these vary, what it keeps grows. For the
// whole process; costs some page faults.
void ReturnFreedMemory();

}  // namespace octavo
