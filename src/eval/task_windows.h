// The right answers of a task as windows: what models are compared on in lockstep where the tasks
// choose the positions.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "eval/evaluate.h"
#include "eval/prompts.h"
#include "eval/task.h"
#include "eval/windows.h"

namespace octavo {

// Of each document its prompt and, scored, the right choice (multiple choice), the target
// (log-likelihood, generation; with a chat template as the assistant's turn begins), or all of its
// text (rolling, in several windows). What is longer than the model sees loses its beginning.
Result<std::vector<Window>> TaskWindows(const EvaluatedModel& model, const Task& task,
                                        std::span<const DocumentPrompt> prompts,
                                        bool has_chat_template);

}  // namespace octavo
