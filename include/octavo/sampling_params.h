// SamplingParams: how the next token is chosen.
#pragma once

#include <cstdint>

#include "octavo/status.h"

namespace octavo {

struct SamplingParams {
  double temperature = 0;  // 0: greedy
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;  // over 1: less of what the prompt or the answer has
  double frequency_penalty = 0;   // for each time a token is in the answer
  double presence_penalty = 0;    // for tokens that are in the answer
  uint64_t seed = 0;

  // InvalidArgument names the parameter, its value and its range.
  Status Check() const;
};

}  // namespace octavo
