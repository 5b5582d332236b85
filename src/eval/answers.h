// Answers to many prompts: generated side by side, with what all prompts begin with computed once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/graph.h"
#include "octavo/generation.h"
#include "text/tokenizer.h"

namespace octavo {

// In the order of the prompts, which are not empty and leave room for the answer. Keys and values
// are float32. `batch_size` answers are generated at a time, the longest prompts first; `on_done`
// is told of each.
Result<std::vector<std::string>> GenerateAnswers(const Model& model, const Tokenizer& tokenizer,
                                                 std::span<const std::vector<TokenId>> prompts,
                                                 const GenerateOptions& options, int64_t batch_size,
                                                 const Context& context,
                                                 const std::function<void(int64_t)>& on_done);

}  // namespace octavo
