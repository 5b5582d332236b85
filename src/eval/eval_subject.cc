#include "eval/eval_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "eval/throughput.h"
#include "runtime/generation.h"

namespace octavo {

namespace {

// Families that were trained with BOS in front of every text.
constexpr std::array kTrainedWithBos = {"LlamaForCausalLM", "MistralForCausalLM"};

std::string TorchName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "torch.float32";
    case DType::kF16:
      return "torch.float16";
    case DType::kBF16:
      return "torch.bfloat16";
    default:
      return std::string(DTypeName(dtype));
  }
}

}  // namespace

Result<std::unique_ptr<EvalSubject>> EvalSubject::Load(const std::filesystem::path& folder,
                                                       const SubjectOptions& options,
                                                       const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(folder));
  std::unique_ptr<EvalSubject> subject(new EvalSubject(folder, std::move(tokenizer)));
  EvalSubject& made = *subject;
  made.options_ = options;
  OCTAVO_ASSIGN_OR_RETURN(made.special_, ReadSpecialTokens(folder, made.tokenizer_));
  OCTAVO_ASSIGN_OR_RETURN(const TokenId prefix, made.special_.Prefix());
  if (options.apply_chat_template) {
    OCTAVO_ASSIGN_OR_RETURN(made.chat_template_, ChatTemplate::Load(folder));
  }
  OCTAVO_ASSIGN_OR_RETURN(made.loaded_, LoadModel(folder, {}, context));
  const Model& model = made.loaded_->model();
  if (options.max_length > model.spec.max_positions) {
    return InvalidArgument(fmt::format("a length of {} is more than the model's {} positions",
                                       options.max_length, model.spec.max_positions));
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<TokenId> ends,
                          ReadEosTokens(folder, made.loaded_->checkpoint().config()));
  std::string eos_text;
  if (made.special_.eos) {
    eos_text = made.tokenizer_.Decode({&*made.special_.eos, 1}, /*skip_special_tokens=*/false);
    if (ends.empty()) ends.push_back(*made.special_.eos);
  }
  made.encoder_.emplace(made.tokenizer_, prefix, options.add_bos);
  made.evaluated_.emplace(EvaluatedModel{
      .model = model,
      .tokenizer = made.tokenizer_,
      .encoder = *made.encoder_,
      .max_length = options.max_length > 0 ? options.max_length : model.spec.max_positions,
      .eos_tokens = std::move(ends),
      .eos_text = std::move(eos_text)});
  made.WarnOfNoBos(context);
  return subject;
}

void EvalSubject::WarnOfNoBos(const Context& context) const {
  const std::string& family = loaded_->model().spec.architecture;
  const bool expected =
      std::find(kTrainedWithBos.begin(), kTrainedWithBos.end(), family) != kTrainedWithBos.end();
  const bool added = options_.add_bos.value_or(tokenizer_.bos_added_by_encode().has_value());
  if (!expected || added || !special_.bos || options_.apply_chat_template) return;
  context.log.Warning(
      fmt::format("{}: the tokenizer puts no BOS in front of a text, and neither does lm-eval; if "
                  "this model was trained with one (most {} were), add --add-bos-token",
                  folder_.string(), family));
}

EvalRunInfo EvalSubject::Describe() const {
  const auto named =
      [&](std::optional<TokenId> id) -> std::optional<std::pair<std::string, TokenId>> {
    if (!id) return std::nullopt;
    return std::pair(tokenizer_.IdToToken(*id).value_or(""), *id);
  };
  EvalRunInfo info;
  info.model = folder_.string();
  if (options_.add_bos) info.model_arguments.Set("add_bos_token", *options_.add_bos);
  if (options_.max_length > 0) info.model_arguments.Set("max_length", options_.max_length);
  info.parameters = ParameterCount(loaded_->model());
  info.dtype = TorchName(loaded_->model().spec.dtype);
  info.max_length = evaluated_->max_length;
  info.pad = named(special_.pad ? special_.pad : special_.eos);
  info.eos = named(special_.eos);
  info.bos = named(special_.bos);
  if (chat_template_) info.chat_template = chat_template_->source();
  return info;
}

}  // namespace octavo
