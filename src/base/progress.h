// Progress of long work: a bar with the time left on a terminal, silence elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace octavo {

// One bar at a time. Start and Finish enclose a piece of work; Advance may be called from the
// thread that called Start.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void Start(std::string_view label, int64_t total) = 0;
  // `note` is shown behind the bar ("block 3 of 30").
  virtual void Advance(int64_t amount, std::string_view note = {}) = 0;
  virtual void Finish() = 0;
};

// Draws on stderr when that is a terminal, and only once two seconds have passed; else does
// nothing.
std::unique_ptr<Progress> MakeTerminalProgress();
Progress& NullProgress();

}  // namespace octavo
