// LLM: a checkpoint in memory, quantized or not, that continues text and answers messages.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "octavo/environment.h"
#include "octavo/generation.h"
#include "octavo/status.h"

namespace octavo {

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// Gets each piece of text as it becomes certain: whole characters, never part of a stop string.
using OnText = std::function<void(std::string_view piece)>;

// One thread at a time calls its functions. What was computed for the last text is kept: a text
// that begins like it is continued from there.
class LLM {
 public:
  // A Hugging Face folder: config.json, safetensors files, tokenizer.json. Errors name the file,
  // the tensor or the layer, what was expected and what was found.
  static Result<LLM> Load(const std::filesystem::path& checkpoint, Environment environment = {});
  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;
  ~LLM();

  // Continues a text. GenerateOptions::eos_tokens is what the checkpoint names unless it is set.
  Result<GenerateResult> Generate(std::string_view prompt, const GenerateOptions& options = {},
                                  const OnText& on_text = {});
  // Answers the last message; the conversation is rendered by the checkpoint's chat template.
  // NotFound when it has none.
  Result<GenerateResult> Chat(std::span<const Message> messages,
                              const GenerateOptions& options = {}, const OnText& on_text = {});

 private:
  struct State;
  explicit LLM(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo
