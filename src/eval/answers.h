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

// Answers those of the prompts whose indices are `wanted`; prompts are not empty and leave room for
// the answer. What an answer is does not depend on which are wanted. Keys and values are float32.
// `batch_size` answers are generated at a time, the longest prompts first; `take` gets each as it
// ends. InvalidArgument names the block whose outputs are not finite.
Status GenerateAnswers(const Model& model, const Tokenizer& tokenizer,
                       std::span<const std::vector<TokenId>> prompts,
                       std::span<const size_t> wanted, const GenerateOptions& options,
                       int64_t batch_size, const Context& context,
                       const std::function<Status(size_t index, std::string text)>& take);

}  // namespace octavo
