#include "apps/text_windows.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"
#include "text/dataset.h"
#include "text/tokenizer.h"

namespace octavo {

namespace {

// The BOS token that config.json names.
Result<TokenId> ReadBosToken(const std::string& folder) {
  const std::string path = folder + "/config.json";
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{64} << 20));
  OCTAVO_ASSIGN_OR_RETURN(const Value config, ParseJson(text, path));
  auto bos = config.RequireInt("bos_token_id");
  if (!bos.ok()) return bos.status().Annotate("--bos needs the token that " + path + " names");
  return static_cast<TokenId>(*bos);
}

}  // namespace

WindowOptions TextWindowFlags::Cut() const {
  WindowOptions options = windows;
  options.stride = stride.value_or(options.window - (bos ? 1 : 0));
  return options;
}

void AddTextWindowFlags(CLI::App& app, TextWindowFlags* flags) {
  app.add_option("--text", flags->text, "The text to predict (UTF-8)");
  app.add_option("--window", flags->windows.window, "Tokens the model sees at once")
      ->capture_default_str();
  app.add_option(
      "--stride", flags->stride,
      "Tokens from one window to the next; less than the window: overlap (without it, none)");
  app.add_option("--max-windows", flags->windows.max_windows,
                 "Stop after this many windows; 0: the whole text")
      ->capture_default_str();
  app.add_flag("--bos", flags->bos, "Put the BOS token in front of every window");
}

Result<std::vector<Window>> ReadTextWindows(const TextWindowFlags& flags,
                                            const std::string& model_folder) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.text));
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(model_folder));
  auto tokens = tokenizer.Encode(text, /*add_special_tokens=*/false);
  if (!tokens.ok()) return tokens.status().Annotate(flags.text);
  WindowOptions options = flags.Cut();
  if (flags.bos) {
    OCTAVO_ASSIGN_OR_RETURN(options.bos, ReadBosToken(model_folder));
  }
  auto windows = CutWindows(*tokens, options);
  if (!windows.ok()) return windows.status().Annotate(flags.text);
  return windows;
}

Result<std::vector<Window>> ReadRowWindows(const std::string& path, const DatasetOptions& options,
                                           const std::string& model_folder) {
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(model_folder));
  std::optional<ChatTemplate> chat_template;
  if (auto found = ChatTemplate::Load(model_folder); found.ok()) {
    chat_template = std::move(found).value();
  } else if (found.status().code() != StatusCode::kNotFound) {
    return found.status();
  }
  OCTAVO_ASSIGN_OR_RETURN(Dataset dataset, ReadDataset(path, options, &tokenizer,
                                                       chat_template ? &*chat_template : nullptr));
  std::vector<Window> windows;
  for (std::vector<TokenId>& sample : dataset.samples) {
    if (sample.size() > 1) windows.push_back({.tokens = std::move(sample)});
  }
  if (windows.empty()) return InvalidArgument(path + ": no row has two tokens, one to predict");
  return windows;
}

}  // namespace octavo
