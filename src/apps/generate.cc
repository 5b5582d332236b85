#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "base/json.h"
#include "runtime/load.h"
#include "runtime/session.h"
#include "text/chat_template.h"
#include "text/dataset.h"
#include "text/tokenizer.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string prompt;
  std::string system;
  bool chat = false;
  bool ignore_eos = false;
  bool json = false;
  GenerateOptions generate;
};

Result<std::vector<TokenId>> EncodePrompt(const Options& options, const Tokenizer& tokenizer) {
  if (!options.chat) return tokenizer.Encode(options.prompt, /*add_special_tokens=*/true);
  OCTAVO_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::Load(options.model));
  Value messages = Value::MakeArray();
  const auto add = [&](std::string_view role, const std::string& content) {
    Value message = Value::MakeObject();
    message.Set("role", role);
    message.Set("content", content);
    messages.as_array().push_back(std::move(message));
  };
  if (!options.system.empty()) add("system", options.system);
  add("user", options.prompt);
  Value variables = Value::MakeObject();
  variables.Set("add_generation_prompt", true);
  return EncodeChat(tokenizer, chat_template, messages, variables);
}

Value ToJson(const GenerateResult& result) {
  Value json = Value::MakeObject();
  json.Set("text", result.text);
  Value::Array tokens;
  for (TokenId token : result.tokens) tokens.push_back(int64_t{token});
  json.Set("tokens", std::move(tokens));
  json.Set("finish_reason", FinishReasonName(result.finish_reason));
  json.Set("prompt_tokens", result.prompt_tokens);
  json.Set("prefill_seconds", result.prefill_seconds);
  json.Set("decode_seconds", result.decode_seconds);
  return json;
}

void LogSpeed(const GenerateResult& result, Logger& log) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  log.Info(fmt::format(
      "prompt {} tokens, {:.0f} tokens/s; answer {} tokens, {:.1f} tokens/s; ended by {}",
      result.prompt_tokens, rate(result.prompt_tokens, result.prefill_seconds),
      result.tokens.size(), rate(std::ssize(result.tokens) - 1, result.decode_seconds),
      FinishReasonName(result.finish_reason)));
}

Status Run(Options& options, const Context& context) {
  OCTAVO_RETURN_IF_ERROR(options.generate.sampling.Check());
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(options.model));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt, EncodePrompt(options, tokenizer));
  OCTAVO_ASSIGN_OR_RETURN(const auto loaded, LoadModel(options.model, {}, context));
  if (!options.ignore_eos) {
    OCTAVO_ASSIGN_OR_RETURN(options.generate.eos_tokens,
                            ReadEosTokens(options.model, loaded->checkpoint().config()));
  }
  Session session(loaded->model(), context, DType::kBF16);
  const auto stream = [&](std::string_view text) {
    if (!options.json) Print(text);
  };
  OCTAVO_ASSIGN_OR_RETURN(const GenerateResult result,
                          session.Generate(prompt, options.generate, tokenizer, stream));
  if (options.json) {
    Print(WriteJson(ToJson(result), {.indent = 2}) + "\n");
  } else {
    Print("\n");
  }
  LogSpeed(result, context.log);
  if (result.finish_reason == FinishReason::kCancelled) return Cancelled("stopped on request");
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description("Continue a prompt, or answer a chat message, streaming the text to stdout");
  app.footer(
      "Examples:\n"
      "  octavo generate model -p \"Once upon a time\" --max-tokens 50\n"
      "  octavo generate model --chat -p \"Name three rivers\" --temperature 0.7 --top-p 0.9 "
      "--seed 1");
  auto options = std::make_shared<Options>();
  SamplingParams& sampling = options->generate.sampling;
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_option("-p,--prompt", options->prompt, "The text to continue")->required();
  app.add_flag("--chat", options->chat,
               "Apply the model's chat template: the prompt is a user's message");
  app.add_option("--system", options->system, "A system message before it (with --chat)");
  app.add_option("-n,--max-tokens", options->generate.max_tokens, "Tokens to generate at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0 takes the most likely token")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "Draw from the k most likely tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p,
                 "Draw from the most likely tokens that reach this probability")
      ->capture_default_str();
  app.add_option("--min-p", sampling.min_p,
                 "Drop tokens less likely than this share of the most likely one")
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "Seed of the draws")->capture_default_str();
  app.add_option("--stop", options->generate.stop,
                 "End before this text (may be given several times)");
  app.add_flag("--ignore-eos", options->ignore_eos, "Go on after the end-of-text token");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kGenerateCommand;
const Command kGenerateCommand = {"generate", Add};

}  // namespace octavo
