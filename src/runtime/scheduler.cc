#include "runtime/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "runtime/sampler.h"

namespace octavo {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

struct Scheduler::Running {
  Running(RequestId request_id, Request&& wanted)
      : id(request_id),
        request(std::move(wanted)),
        rng(request.options.sampling.seed),
        history(request.prompt) {
    if (request.tokenizer != nullptr) text.emplace(*request.tokenizer, request.options.stop);
    result.prompt_tokens = std::ssize(request.prompt);
    result.cached_tokens = request.state->length();
  }

  int64_t prompt_left() const { return std::ssize(request.prompt) - request.state->length(); }
  void Emit(std::string_view piece) {
    if (piece.empty()) return;
    result.text += piece;
    if (request.on_text) request.on_text(piece);
  }
  void End(FinishReason reason) {
    ended = true;
    result.finish_reason = reason;
  }
  void Fail(Status why) {
    ended = true;
    status = std::move(why);
  }

  // From logits to a token; touches nothing that other requests use.
  void Choose(std::span<float> logits);
  // Takes the chosen token up and decides whether it was the last.
  void Accept(int64_t max_positions);
  Result<GenerateResult> Finish();

  RequestId id;
  Request request;
  Rng rng;
  TokenHistory history;
  std::optional<TextStream> text;
  GenerateResult result;
  TokenId chosen = 0;
  bool ended = false;
  Status status;
  Clock::time_point start = Clock::now();  // of the prompt, then of the answer
};

void Scheduler::Running::Choose(std::span<float> logits) {
  const GenerateOptions& options = request.options;
  const Result<int32_t> most_likely = CheckedArgmax(logits);
  if (!most_likely.ok()) return Fail(most_likely.status());
  std::vector<float> raw;
  if (options.want_logprobs) raw.assign(logits.begin(), logits.end());
  const bool penalized = history.Penalize(options.sampling, logits);
  const bool greedy = options.sampling.temperature == 0 && !penalized;
  chosen = greedy ? *most_likely : SampleToken(logits, options.sampling, &rng);
  if (options.want_logprobs)
    result.logprobs.push_back(ComputeLogprob(raw, chosen, options.top_logprobs));
}

void Scheduler::Running::Accept(int64_t max_positions) {
  if (ended) return;
  if (result.tokens.empty()) {
    result.prefill_seconds = SecondsSince(start);
    start = Clock::now();
  }
  const GenerateOptions& options = request.options;
  const auto& eos = options.eos_tokens;
  if (std::find(eos.begin(), eos.end(), chosen) != eos.end()) {
    if (options.want_logprobs) result.logprobs.pop_back();
    return End(FinishReason::kEos);
  }
  result.tokens.push_back(chosen);
  history.Add(chosen);
  if (text) Emit(text->Push(chosen));
  if (text && text->stopped()) return End(FinishReason::kStop);
  // The last token of all is never fed: nobody asks what follows it.
  if (std::ssize(result.tokens) == options.max_tokens || request.state->length() == max_positions)
    End(FinishReason::kLength);
}

Result<GenerateResult> Scheduler::Running::Finish() {
  if (!status.ok()) return status;
  if (!result.tokens.empty()) result.decode_seconds = SecondsSince(start);
  if (text && !text->stopped()) {
    Emit(text->Flush());
    if (text->stopped()) result.finish_reason = FinishReason::kStop;
  }
  return std::move(result);
}

Scheduler::Scheduler(ModelPass* pass) : pass_(*pass) {}

Scheduler::~Scheduler() = default;

Result<Scheduler::RequestId> Scheduler::Add(Request request) {
  OCTAVO_CHECK(request.state != nullptr);
  OCTAVO_CHECK(request.tokenizer != nullptr || request.options.stop.empty());
  OCTAVO_RETURN_IF_ERROR(request.options.sampling.Check());
  if (request.options.max_tokens < 1) {
    return InvalidArgument(
        fmt::format("max-tokens is {}; 1 or more is expected", request.options.max_tokens));
  }
  OCTAVO_RETURN_IF_ERROR(CheckPromptLength(std::ssize(request.prompt), pass_.model()));
  OCTAVO_RETURN_IF_ERROR(CheckTokens(request.prompt, pass_.model()));
  OCTAVO_CHECK(request.state->length() < std::ssize(request.prompt)) << request.state->length();
  running_.push_back(std::make_unique<Running>(next_id_, std::move(request)));
  return next_id_++;
}

void Scheduler::Cancel(RequestId id) {
  for (const auto& running : running_) {
    if (running->id == id) running->End(FinishReason::kCancelled);
  }
}

std::vector<Scheduler::Finished> Scheduler::Step() {
  std::vector<Running*> decoding;
  std::vector<Running*> waiting;
  for (const auto& running : running_) {
    if (!pass_.context().CheckCancelled().ok()) running->End(FinishReason::kCancelled);
    if (running->ended) continue;
    (running->prompt_left() > 0 ? waiting : decoding).push_back(running.get());
  }
  for (size_t first = 0; first < decoding.size(); first += kDecodeRows) {
    const size_t count = std::min<size_t>(kDecodeRows, decoding.size() - first);
    Decode(std::span(decoding).subspan(first, count));
  }
  int64_t rows = 0;
  for (Running* running : waiting) {
    rows += std::min(kPromptRows, running->prompt_left());
    if (rows > kPromptRows) break;
    Prefill(running);
  }

  std::vector<Finished> finished;
  for (const auto& running : running_) {
    if (running->ended) finished.push_back({running->id, running->Finish()});
  }
  std::erase_if(running_, [](const auto& running) { return running->ended; });
  return finished;
}

void Scheduler::Decode(std::span<Running* const> group) {
  batch_.Clear();
  states_.clear();
  for (const Running* running : group) {
    SequenceState* state = running->request.state;
    batch_.Add(running->result.tokens.back(), static_cast<int32_t>(states_.size()), state->length(),
               true);
    states_.push_back(state);
  }
  RunAndChoose(group);
}

void Scheduler::Prefill(Running* running) {
  batch_.Clear();
  states_.assign(1, running->request.state);
  const std::vector<TokenId>& prompt = running->request.prompt;
  const int64_t begin = running->request.state->length();
  const int64_t end = std::min(std::ssize(prompt), begin + kPromptRows);
  for (int64_t position = begin; position < end; ++position) {
    const bool last = position + 1 == std::ssize(prompt);
    batch_.Add(prompt[static_cast<size_t>(position)], 0, position, last);
  }
  batch_.lengths.assign(1, std::ssize(prompt));
  RunAndChoose({&running, 1});
}

void Scheduler::RunAndChoose(std::span<Running* const> group) {
  const auto logits = pass_.Run(batch_, states_);
  if (!logits.ok()) {
    for (Running* running : group) running->Fail(logits.status());
    return;
  }
  if (logits->empty()) return;  // a prompt that goes on
  const auto vocab = static_cast<size_t>(pass_.model().spec.vocab_size);
  pass_.context().pool.ParallelFor(std::ssize(group), [&](int64_t row) {
    const auto index = static_cast<size_t>(row);
    group[index]->Choose(logits->subspan(index * vocab, vocab));
  });
  for (Running* running : group) running->Accept(pass_.model().spec.max_positions);
}

}  // namespace octavo
