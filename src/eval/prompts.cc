#include "eval/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval/python_random.h"
#include "text/jinja/unicode.h"

namespace octavo {

namespace {

struct Message {
  std::string role;
  std::string content;
  std::string delimiter;  // behind it, where messages become plain text
};
using Messages = std::vector<Message>;

bool IsSpaceAt(std::string_view text, bool at_end) {
  const auto side = at_end ? jinja::Side::kRight : jinja::Side::kLeft;
  return jinja::Strip(text, side).size() != text.size();
}

// Both, with `delimiter` between them unless a blank is there already.
std::string Join(const std::string& first, const std::string& second,
                 const std::string& delimiter) {
  if (first.empty() || second.empty()) return first + second;
  if (IsSpaceAt(first, true) || IsSpaceAt(second, false)) return first + second;
  return first + delimiter + second;
}

std::string PlainText(std::span<const Message> messages) {
  std::string text;
  for (const Message& message : messages) text += message.content + message.delimiter;
  return text;
}

// All turns behind the system's in one user turn.
Messages InOneTurn(const Messages& messages) {
  Messages turns;
  std::span<const Message> rest = messages;
  if (rest.front().role == "system") {
    turns.push_back(rest.front());
    rest = rest.subspan(1);
  }
  turns.push_back({"user", PlainText(rest), ""});
  return turns;
}

Result<std::string> Render(const Messages& messages, const PromptOptions& options) {
  if (options.chat_template == nullptr) return PlainText(messages);
  Value turns = Value::MakeArray();
  for (const Message& message : options.fewshot_as_multiturn ? messages : InOneTurn(messages)) {
    Value turn = Value::MakeObject();
    turn.Set("role", message.role);
    turn.Set("content", message.content);
    turns.as_array().push_back(std::move(turn));
  }
  Value variables = Value::MakeObject();
  variables.Set("add_generation_prompt", true);
  Result<std::string> text = options.chat_template->Render(turns, variables);
  if (text.ok() || messages.front().role != "system") return text;
  // A template that refuses a system turn gets none, as in lm-eval.
  turns.as_array().erase(turns.as_array().begin());
  return options.chat_template->Render(turns, variables);
}

// The answer as text: an index is that of a choice.
Result<std::string> AnswerText(const Value& target, const std::vector<std::string>& choices) {
  if (target.is_string()) return target.as_string();
  const auto count = std::ssize(choices);
  if (target.is_int() && target.as_int() >= 0 && target.as_int() < count)
    return choices[static_cast<size_t>(target.as_int())];
  return InvalidArgument(fmt::format("the answer is {}, expected a text or an index below {}",
                                     target.type_name(), count));
}

class PromptBuilder {
 public:
  PromptBuilder(const Task& task, const PromptOptions& options)
      : task_(task), options_(options), random_(options.fewshot_seed) {}

  Result<DocumentPrompt> Build(int64_t doc_id) {
    const Value& doc = task_.documents()[static_cast<size_t>(doc_id)];
    DocumentPrompt prompt{.doc_id = doc_id};
    OCTAVO_ASSIGN_OR_RETURN(prompt.target, task_.TargetOf(doc));
    OCTAVO_ASSIGN_OR_RETURN(prompt.choices, task_.ChoicesOf(doc));
    if (task_.kind() == TaskKind::kRolling) {
      OCTAVO_ASSIGN_OR_RETURN(prompt.context, AnswerText(prompt.target, {}));
      return prompt;
    }
    OCTAVO_ASSIGN_OR_RETURN(Messages messages, Beginning(doc));
    OCTAVO_ASSIGN_OR_RETURN(const Value question, task_.TextOf(doc));
    prompt.answer = question.is_int() ? question : prompt.target;
    if (question.is_int()) {
      OCTAVO_RETURN_IF_ERROR(FollowChoices(std::move(messages), &prompt));
      return prompt;
    }
    OCTAVO_ASSIGN_OR_RETURN(prompt.context, Ask(std::move(messages), question.as_string()));
    if (task_.kind() == TaskKind::kLoglikelihood) {
      OCTAVO_ASSIGN_OR_RETURN(std::string answer, AnswerText(prompt.target, {}));
      prompt.continuations.push_back(std::move(answer));
    }
    if (task_.kind() == TaskKind::kMultipleChoice) {
      for (const std::string& choice : prompt.choices)
        prompt.continuations.push_back(Delimiter() + choice);
    }
    return prompt;
  }

 private:
  // In front of a continuation that is a choice.
  std::string Delimiter() const {
    return options_.chat_template != nullptr ? "" : task_.target_delimiter();
  }

  Result<std::string> Ask(Messages messages, std::string question) const {
    messages.push_back({"user", std::move(question), ""});
    return Render(messages, options_);
  }

  // The choices are the questions, and the target is what follows each of them.
  Status FollowChoices(const Messages& messages, DocumentPrompt* prompt) const {
    OCTAVO_ASSIGN_OR_RETURN(const std::string target, AnswerText(prompt->target, {}));
    for (const std::string& choice : prompt->choices) {
      OCTAVO_ASSIGN_OR_RETURN(std::string context, Ask(messages, choice));
      prompt->contexts.push_back(std::move(context));
      prompt->continuations.push_back(Delimiter() + target);
    }
    if (prompt->contexts.empty()) return InvalidArgument("there are no choices");
    prompt->context = prompt->contexts.front();
    return OkStatus();
  }

  // What stands in front of the question: system turn and examples.
  Result<Messages> Beginning(const Value& doc) {
    Messages messages;
    const std::string system =
        Join(options_.system_instruction, task_.description(), task_.fewshot_delimiter());
    if (!system.empty()) messages.push_back({"system", system, ""});
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<const Value*> examples, Examples(doc));
    for (const Value* example : examples) {
      OCTAVO_RETURN_IF_ERROR(AddExample(*example, &messages));
    }
    return messages;
  }

  Status AddExample(const Value& example, Messages* messages) const {
    OCTAVO_ASSIGN_OR_RETURN(const Value text, task_.TextOf(example));
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> choices, task_.ChoicesOf(example));
    OCTAVO_ASSIGN_OR_RETURN(std::string question, AnswerText(text, choices));
    OCTAVO_ASSIGN_OR_RETURN(const Value target, task_.TargetOf(example));
    OCTAVO_ASSIGN_OR_RETURN(std::string answer, AnswerText(target, choices));
    const bool answered = !answer.empty();
    messages->push_back({"user", std::move(question), answered ? task_.target_delimiter() : ""});
    if (answered) messages->push_back({"assistant", std::move(answer), task_.fewshot_delimiter()});
    return OkStatus();
  }

  Result<std::vector<const Value*>> Examples(const Value& doc) {
    const int64_t count = task_.num_fewshot();
    std::vector<const Value*> examples;
    if (count == 0) return examples;
    const std::vector<Value>& pool = task_.examples();
    const bool draws = !task_.takes_first_examples();
    // One more where the document itself may be among them.
    const int64_t drawn = count + (draws && task_.keeps_document_out() ? 1 : 0);
    if (drawn > std::ssize(pool)) {
      return InvalidArgument(fmt::format(
          "{} examples are more than can be taken from the {} there are", count, pool.size()));
    }
    const auto allowed = [&](const Value& example) {
      return !task_.keeps_document_out() || !(example == doc);
    };
    if (draws) {
      for (const int64_t index : random_.Sample(std::ssize(pool), drawn)) {
        const Value& example = pool[static_cast<size_t>(index)];
        if (allowed(example)) examples.push_back(&example);
      }
    }
    if (std::ssize(examples) < count) {
      // The first ones; or copies of the document were drawn, and all is drawn again without any.
      std::vector<const Value*> rest;
      for (const Value& example : pool) {
        if (allowed(example)) rest.push_back(&example);
      }
      if (std::ssize(rest) < count)
        return InvalidArgument("too many of the examples are the document itself");
      if (!draws) {
        examples = std::move(rest);
      } else {
        examples.clear();
        for (const int64_t index : random_.Sample(std::ssize(rest), count))
          examples.push_back(rest[static_cast<size_t>(index)]);
      }
    }
    examples.resize(static_cast<size_t>(count));
    return examples;
  }

  const Task& task_;
  const PromptOptions& options_;
  PythonRandom random_;
};

}  // namespace

Result<std::vector<DocumentPrompt>> BuildPrompts(const Task& task, int64_t limit,
                                                 const PromptOptions& options) {
  std::vector<DocumentPrompt> prompts;
  PromptBuilder builder(task, options);
  const int64_t count = std::min(limit, std::ssize(task.documents()));
  for (int64_t doc_id = 0; doc_id < count; ++doc_id) {
    Result<DocumentPrompt> prompt = builder.Build(doc_id);
    if (!prompt.ok())
      return prompt.status().Annotate(fmt::format("task {}, document {}", task.name(), doc_id));
    prompts.push_back(std::move(prompt).value());
  }
  return prompts;
}

}  // namespace octavo
