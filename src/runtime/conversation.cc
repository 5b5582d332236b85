#include "runtime/conversation.h"

#include "text/dataset.h"

namespace octavo {

Conversation::Conversation(const Model& model, const Tokenizer& tokenizer,
                           const ChatTemplate& chat_template, const Context& context)
    : tokenizer_(tokenizer),
      chat_template_(chat_template),
      session_(model, context, DType::kBF16) {}

void Conversation::Start(std::string_view system) {
  messages_.as_array().clear();
  if (!system.empty()) Add("system", system);
}

Result<GenerateResult> Conversation::Ask(std::string_view message, const GenerateOptions& options,
                                         const std::function<void(std::string_view)>& on_text) {
  Add("user", message);
  const auto answer = [&]() -> Result<GenerateResult> {
    Value variables = Value::MakeObject();
    variables.Set("add_generation_prompt", true);
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt,
                            EncodeChat(tokenizer_, chat_template_, messages_, variables));
    return session_.Generate(prompt, options, tokenizer_, on_text);
  };
  Result<GenerateResult> result = answer();
  if (result.ok())
    Add("assistant", result->text);
  else
    messages_.as_array().pop_back();
  return result;
}

void Conversation::Add(std::string_view role, std::string_view content) {
  Value message = Value::MakeObject();
  message.Set("role", role);
  message.Set("content", content);
  messages_.as_array().push_back(std::move(message));
}

}  // namespace octavo
