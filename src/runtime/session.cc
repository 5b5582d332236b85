#include "runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "base/json.h"

namespace octavo {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Text on its way out: holds back what may still become a stop string.
class StopFilter {
 public:
  explicit StopFilter(const std::vector<std::string>& stop) : stop_(stop) {}

  // Takes more text and gives what is certain; *stopped when a stop string was completed (the text
  // ends before it).
  std::string Push(std::string_view text, bool* stopped) {
    held_ += text;
    size_t end = std::string::npos;
    for (const std::string& stop : stop_) {
      if (!stop.empty()) end = std::min(end, held_.find(stop));
    }
    *stopped = end != std::string::npos;
    if (!*stopped) end = held_.size() - LongestPossibleStart();
    std::string certain = held_.substr(0, end);
    held_.erase(0, *stopped ? held_.size() : end);
    return certain;
  }
  std::string Flush() { return std::move(held_); }

 private:
  // Length of the longest end of held_ with which some stop string begins.
  size_t LongestPossibleStart() const {
    size_t longest = 0;
    for (const std::string& stop : stop_) {
      for (size_t length = std::min(stop.size(), held_.size()); length > longest; --length) {
        if (held_.ends_with(std::string_view(stop).substr(0, length))) longest = length;
      }
    }
    return longest;
  }

  const std::vector<std::string>& stop_;
  std::string held_;
};

Result<std::vector<TokenId>> ParseEosTokens(const Value& config) {
  std::vector<TokenId> tokens;
  const Value* eos = config.Find("eos_token_id");
  if (eos == nullptr || eos->is_null()) return tokens;
  const Value::Array one = {*eos};
  for (const Value& id : eos->is_array() ? eos->as_array() : one) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) {
      return InvalidArgument("\"eos_token_id\" is expected to be a token id or a list of them");
    }
    tokens.push_back(static_cast<TokenId>(id.as_int()));
  }
  return tokens;
}

}  // namespace

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Result<std::vector<TokenId>> ReadEosTokens(const std::filesystem::path& folder,
                                           const Value& config) {
  const std::filesystem::path path = folder / "generation_config.json";
  if (std::filesystem::exists(path)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{1} << 20));
    OCTAVO_ASSIGN_OR_RETURN(const Value generation, ParseJson(text, path.string()));
    auto tokens = ParseEosTokens(generation);
    if (!tokens.ok()) return tokens.status().Annotate(path.string());
    if (!tokens->empty()) return tokens;
  }
  auto tokens = ParseEosTokens(config);
  if (!tokens.ok()) return tokens.status().Annotate((folder / "config.json").string());
  return tokens;
}

Session::Session(const Model& model, const Context& context, DType kv_dtype)
    : model_(model),
      context_(context),
      forward_(model, context),
      state_(MakeSequenceState(model, kv_dtype)) {}

Result<std::span<const float>> Session::Feed(std::span<const TokenId> tokens) {
  if (tokens.empty())
    return InvalidArgument("there is nothing to continue: the prompt has no token");
  const int64_t end = state_.length() + std::ssize(tokens);
  if (end > model_.spec.max_positions) {
    return InvalidArgument(fmt::format("{} tokens are more than the model's {} positions", end,
                                       model_.spec.max_positions));
  }
  logits_.resize(static_cast<size_t>(model_.spec.vocab_size));
  while (!tokens.empty()) {
    OCTAVO_RETURN_IF_ERROR(context_.CheckCancelled());
    const int64_t rows = std::min<int64_t>(kPrefillRows, std::ssize(tokens));
    const bool last = rows == std::ssize(tokens);
    Batch batch;
    const int64_t start = state_.length();
    for (int64_t i = 0; i < rows; ++i)
      batch.Add(tokens[static_cast<size_t>(i)], 0, start + i, last && i + 1 == rows);
    hidden_.resize(static_cast<size_t>(rows * model_.spec.hidden_size));
    OCTAVO_RETURN_IF_ERROR(forward_.Embed(batch, hidden_));
    SequenceState* states[] = {&state_};
    for (int64_t block = 0; block < model_.spec.num_layers; ++block)
      forward_.Block(block, batch, states, hidden_);
    if (last) forward_.Head(batch, hidden_, logits_);
    tokens = tokens.subspan(static_cast<size_t>(rows));
  }
  return std::span<const float>(logits_);
}

Result<GenerateResult> Session::Generate(std::span<const TokenId> prompt,
                                         const GenerateOptions& options, const Tokenizer& tokenizer,
                                         const std::function<void(std::string_view)>& on_text) {
  OCTAVO_RETURN_IF_ERROR(options.sampling.Check());
  GenerateResult result;
  result.prompt_tokens = std::ssize(prompt);
  Rng rng(options.sampling.seed);
  StreamDecoder decoder(tokenizer, /*skip_special_tokens=*/true);
  StopFilter filter(options.stop);
  const auto emit = [&](std::string_view text) {
    if (text.empty()) return;
    result.text += text;
    on_text(text);
  };

  auto start = Clock::now();
  auto logits = Feed(prompt);
  result.prefill_seconds = SecondsSince(start);
  start = Clock::now();
  bool stopped = false;
  while (logits.ok() && std::ssize(result.tokens) < options.max_tokens) {
    OCTAVO_RETURN_IF_ERROR(CheckLogits(*logits));
    const TokenId token = SampleToken(*logits, options.sampling, &rng);
    const auto& eos = options.eos_tokens;
    if (std::find(eos.begin(), eos.end(), token) != eos.end()) {
      result.finish_reason = FinishReason::kEos;
      break;
    }
    result.tokens.push_back(token);
    emit(filter.Push(decoder.Push(token), &stopped));
    if (stopped) {
      result.finish_reason = FinishReason::kStop;
      break;
    }
    // The last token of all is never fed: nobody asks what follows it.
    if (std::ssize(result.tokens) == options.max_tokens ||
        state_.length() + 1 > model_.spec.max_positions)
      break;
    logits = Feed({&token, 1});
  }
  result.decode_seconds = SecondsSince(start);
  if (!logits.ok()) {
    if (logits.status().code() != StatusCode::kCancelled) return logits.status();
    result.finish_reason = FinishReason::kCancelled;
  }
  if (!stopped) {
    emit(filter.Push(decoder.Flush(), &stopped));
    if (stopped)
      result.finish_reason = FinishReason::kStop;
    else
      emit(filter.Flush());
  }
  return result;
}

}  // namespace octavo
