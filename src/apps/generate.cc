#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "apps/command.h"
#include "apps/generation_flags.h"
#include "base/json.h"
#include "runtime/conversation.h"
#include "runtime/load.h"
#include "text/chat_template.h"
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

using OnText = std::function<void(std::string_view)>;

Result<GenerateResult> Generate(const Options& options, const Model& model,
                                const Tokenizer& tokenizer, const OnText& on_text,
                                const Context& context) {
  if (options.chat) {
    OCTAVO_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::Load(options.model));
    Conversation conversation(model, tokenizer, chat_template, context);
    conversation.Start(options.system);
    return conversation.Ask(options.prompt, options.generate, on_text);
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt,
                          tokenizer.Encode(options.prompt, /*add_special_tokens=*/true));
  Session session(model, context, DType::kBF16);
  return session.Generate(prompt, options.generate, tokenizer, on_text);
}

Value ToJson(const std::vector<TokenLogprob>& logprobs, const GenerateResult& result,
             const Tokenizer& tokenizer) {
  const auto entry = [&](TokenId token, double logprob) {
    Value json = Value::MakeObject();
    json.Set("id", int64_t{token});
    json.Set("token", tokenizer.IdToToken(token).value_or(""));
    json.Set("logprob", logprob);
    return json;
  };
  Value::Array rows;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    Value row = entry(result.tokens[i], logprobs[i].logprob);
    Value::Array top;
    for (const auto& likely : logprobs[i].top) top.push_back(entry(likely.token, likely.logprob));
    row.Set("top_logprobs", std::move(top));
    rows.push_back(std::move(row));
  }
  return rows;
}

Value ToJson(const GenerateResult& result, const GenerateOptions& options,
             const Tokenizer& tokenizer) {
  Value json = Value::MakeObject();
  json.Set("text", result.text);
  Value::Array tokens;
  for (TokenId token : result.tokens) tokens.emplace_back(int64_t{token});
  json.Set("tokens", std::move(tokens));
  if (options.want_logprobs) json.Set("logprobs", ToJson(result.logprobs, result, tokenizer));
  json.Set("finish_reason", FinishReasonName(result.finish_reason));
  json.Set("prompt_tokens", result.prompt_tokens);
  json.Set("prefill_seconds", result.prefill_seconds);
  json.Set("decode_seconds", result.decode_seconds);
  return json;
}

// "token  logprob  most likely ones", a line a token.
std::string LogprobLines(const GenerateResult& result, const Tokenizer& tokenizer) {
  const auto text = [&](TokenId token) {
    return WriteJson(tokenizer.IdToToken(token).value_or(""));
  };
  std::string lines;
  for (size_t i = 0; i < result.logprobs.size(); ++i) {
    lines += fmt::format("{:<20} {:9.4f} ", text(result.tokens[i]), result.logprobs[i].logprob);
    for (const auto& likely : result.logprobs[i].top)
      lines += fmt::format("  {} {:.4f}", text(likely.token), likely.logprob);
    lines += "\n";
  }
  return lines;
}

Status Run(Options& options, const Context& context) {
  OCTAVO_RETURN_IF_ERROR(options.generate.sampling.Check());
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(options.model));
  OCTAVO_ASSIGN_OR_RETURN(const auto loaded, LoadModel(options.model, {}, context));
  if (!options.ignore_eos) {
    OCTAVO_ASSIGN_OR_RETURN(options.generate.eos_tokens,
                            ReadEosTokens(options.model, loaded->checkpoint().config()));
  }
  const auto stream = [&](std::string_view text) {
    if (!options.json) Print(text);
  };
  OCTAVO_ASSIGN_OR_RETURN(const GenerateResult result,
                          Generate(options, loaded->model(), tokenizer, stream, context));
  if (options.json) {
    Print(WriteJson(ToJson(result, options.generate, tokenizer), {.indent = 2}) + "\n");
  } else {
    Print("\n" + LogprobLines(result, tokenizer));
  }
  context.log.Info(SpeedLine(result));
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
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_option("-p,--prompt", options->prompt, "The text to continue")->required();
  app.add_flag("--chat", options->chat,
               "Apply the model's chat template: the prompt is a user's message");
  app.add_option("--system", options->system, "A system message before it (with --chat)");
  AddGenerationFlags(app, &options->generate);
  app.add_option_function<int64_t>(
         "--logprobs",
         [options](int64_t count) {
           options->generate.want_logprobs = true;
           options->generate.top_logprobs = count;
         },
         "Also give each token's log-probability, and this many of the most likely tokens (the "
         "model's own, before penalties and temperature)")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--ignore-eos", options->ignore_eos, "Go on after the end-of-text token");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kGenerateCommand;
const Command kGenerateCommand = {"generate", Add};

}  // namespace octavo
