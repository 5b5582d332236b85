// Chat templates: messages to the text a model was trained on, as transformers' apply_chat_template
// renders it.
#pragma once

#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

class ChatTemplate {
 public:
  // The template of a checkpoint folder: chat_template.jinja, else "chat_template" of
  // tokenizer_config.json (a string, or a list of {name, template} of which "default" is taken),
  // with bos_token, eos_token ... as that file names them. NotFound when the folder has none.
  static Result<ChatTemplate> Load(const std::filesystem::path& folder);
  // `special_tokens` is an object: "bos_token", "eos_token" ... -> text. Syntax errors: CorruptFile
  // with statement and line.
  static Result<ChatTemplate> Compile(std::string_view source, const Value& special_tokens);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `messages` is an array of {role, content, ...}, handed on as it is; `options` an object (or
  // null) of further variables (tools, documents, enable_thinking ...), which come before the
  // special tokens. As transformers has it: tools and documents are none where they are absent,
  // add_generation_prompt is false; "continue_final_message" (true, or the name of a field of the
  // last message) cuts the text where that field ends. An empty conversation, an error in the
  // template and raise_exception are InvalidArgument with line.
  Result<std::string> Render(const Value& messages, const Value& options) const;

  // What strftime_now tells; the local time unless set.
  void set_clock(std::function<std::tm()> clock);

  // The template as it was compiled.
  const std::string& source() const;
  // Text of the template's bos_token, "" if there is none: where a rendered text starts with it,
  // the tokenizer must not add another.
  const std::string& bos_token() const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo
