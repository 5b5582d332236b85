// A chat with a model: messages in turn, rendered by its template, remembered between answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/context.h"
#include "base/status.h"
#include "base/value.h"
#include "runtime/session.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

class Conversation {
 public:
  // Borrows everything.
  Conversation(const Model& model, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               const Context& context);

  // Starts anew, with this system message; with none where it is empty.
  void Start(std::string_view system);

  // Adds the user's message and the model's answer to it. The whole conversation is rendered again,
  // because a template may show earlier messages differently, but only what is new is computed. A
  // cancelled context ends the answer, and what there is of it stays. After an error the
  // conversation is what it was.
  Result<GenerateResult> Ask(std::string_view message, const GenerateOptions& options,
                             const std::function<void(std::string_view)>& on_text);

  // An array of {role, content}.
  const Value& messages() const { return messages_; }

 private:
  void Add(std::string_view role, std::string_view content);

  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_template_;
  Session session_;
  Value messages_ = Value::MakeArray();
};

}  // namespace octavo
