// A checkpoint as evaluations ask it: the loaded model, its tokenizer and how that splits requests,
// its chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/context.h"
#include "base/status.h"
#include "eval/eval_report.h"
#include "eval/evaluate.h"
#include "eval/token_requests.h"
#include "runtime/load.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct SubjectOptions {
  std::optional<bool> add_bos = std::nullopt;  // nothing: as the tokenizer has it
  int64_t max_length = 0;                      // tokens seen at once; 0: all the model's positions
  bool apply_chat_template = false;
};

class EvalSubject {
 public:
  // Warns where a Llama-like model gets no BOS. NotFound when a chat template is asked for and
  // there is none.
  static Result<std::unique_ptr<EvalSubject>> Load(const std::filesystem::path& folder,
                                                   const SubjectOptions& options,
                                                   const Context& context);

  const EvaluatedModel& evaluated() const { return *evaluated_; }
  const LoadedModel& loaded() const { return *loaded_; }
  // To put other layers in the place of its own for a while (sensitivity.h).
  LoadedModel& mutable_loaded() { return *loaded_; }
  // Null unless it is to be applied.
  const ChatTemplate* chat_template() const { return chat_template_ ? &*chat_template_ : nullptr; }
  // What the results file says of the model.
  EvalRunInfo Describe() const;

 private:
  explicit EvalSubject(std::filesystem::path folder, Tokenizer tokenizer)
      : folder_(std::move(folder)), tokenizer_(std::move(tokenizer)) {}
  void WarnOfNoBos(const Context& context) const;

  std::filesystem::path folder_;
  SubjectOptions options_;
  Tokenizer tokenizer_;
  SpecialTokens special_;
  std::optional<ChatTemplate> chat_template_;
  std::unique_ptr<LoadedModel> loaded_;
  std::optional<RequestEncoder> encoder_;
  std::optional<EvaluatedModel> evaluated_;
};

}  // namespace octavo
