// What tells two runs' samples apart: SHA-256 of document, prompt and target, as lm-eval has them.
#pragma once

#include <string>

#include "eval/prompts.h"
#include "eval/task.h"

namespace octavo {

struct SampleHashes {
  std::string doc, prompt, target;
};
SampleHashes HashSample(const Task& task, const DocumentPrompt& prompt);

}  // namespace octavo
