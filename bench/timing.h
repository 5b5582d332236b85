// How long calls take on a machine that also does other things.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/context.h"

namespace octavo {

// Seconds that a call of each contender takes. They take turns, so that all meet the same machine,
// each until its calls have taken `seconds` together (three calls at least). The tenth percentile
// of a contender's calls counts: other programs only slow calls down, but the very fastest may be a
// fault of a virtual machine's clock. Stops early when cancelled.
std::vector<double> MeasureInTurns(std::span<const std::function<void()>> contenders,
                                   double seconds, const Context& context);

}  // namespace octavo
