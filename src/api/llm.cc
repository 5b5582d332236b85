#include "octavo/llm.h"

#include <optional>
#include <utility>

#include "api/environment_context.h"
#include "runtime/generation.h"
#include "runtime/load.h"
#include "runtime/session.h"
#include "text/chat_template.h"
#include "text/dataset.h"
#include "text/tokenizer.h"

namespace octavo {

struct LLM::State {
  std::unique_ptr<EnvironmentContext> environment;
  std::unique_ptr<LoadedModel> loaded;
  std::optional<Tokenizer> tokenizer;
  // An error (NotFound where the checkpoint has none) until someone asks for it.
  std::optional<Result<ChatTemplate>> chat_template;
  std::vector<TokenId> eos_tokens;
  std::optional<Session> session;

  Result<GenerateResult> Continue(std::span<const TokenId> prompt, GenerateOptions options,
                                  const OnText& on_text) {
    if (options.eos_tokens.empty()) options.eos_tokens = eos_tokens;
    const auto forward_text = [&](std::string_view piece) {
      if (on_text) on_text(piece);
    };
    return session->Generate(prompt, options, *tokenizer, forward_text);
  }
};

LLM::LLM(std::unique_ptr<State> state) : state_(std::move(state)) {}
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;
LLM::~LLM() = default;

Result<LLM> LLM::Load(const std::filesystem::path& checkpoint, Environment environment) {
  auto state = std::make_unique<State>();
  OCTAVO_ASSIGN_OR_RETURN(state->environment, EnvironmentContext::Make(std::move(environment)));
  const Context& context = state->environment->context();
  OCTAVO_ASSIGN_OR_RETURN(state->tokenizer, Tokenizer::Load(checkpoint));
  state->chat_template = ChatTemplate::Load(checkpoint);
  OCTAVO_ASSIGN_OR_RETURN(state->loaded, LoadModel(checkpoint, {}, context));
  OCTAVO_ASSIGN_OR_RETURN(state->eos_tokens,
                          ReadEosTokens(checkpoint, state->loaded->checkpoint().config()));
  state->session.emplace(state->loaded->model(), context, DType::kBF16);
  return LLM(std::move(state));
}

Result<GenerateResult> LLM::Generate(std::string_view prompt, const GenerateOptions& options,
                                     const OnText& on_text) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                          state_->tokenizer->Encode(prompt, /*add_special_tokens=*/true));
  return state_->Continue(tokens, options, on_text);
}

Result<GenerateResult> LLM::Chat(std::span<const Message> messages, const GenerateOptions& options,
                                 const OnText& on_text) {
  if (!state_->chat_template->ok()) return state_->chat_template->status();
  Value conversation = Value::MakeArray();
  for (const Message& message : messages) {
    Value item = Value::MakeObject();
    item.Set("role", message.role);
    item.Set("content", message.content);
    conversation.as_array().push_back(std::move(item));
  }
  Value variables = Value::MakeObject();
  variables.Set("add_generation_prompt", true);
  OCTAVO_ASSIGN_OR_RETURN(
      const std::vector<TokenId> tokens,
      EncodeChat(*state_->tokenizer, **state_->chat_template, conversation, variables));
  return state_->Continue(tokens, options, on_text);
}

}  // namespace octavo
