// Token ids to text, all at once or one by one.
#include "text/tokenizer_state.h"
#include "text/unicode.h"

namespace octavo {
namespace {

// What happens without a decoder: tokens with spaces between them.
class JoinStage : public DecodeStage {
 public:
  void Push(std::string token, std::vector<std::string>& out) override {
    if (!is_first_) out.emplace_back(" ");
    is_first_ = false;
    out.push_back(std::move(token));
  }

 private:
  bool is_first_ = true;
};

// The stages of one text, one after another.
class DecodePipeline {
 public:
  DecodePipeline(const Decoder* decoder, DecodeMode mode) {
    if (decoder != nullptr) {
      decoder->AddStages(mode, stages_);
    } else {
      stages_.push_back(std::make_unique<JoinStage>());
    }
  }

  void Push(std::string_view token, std::string& out) {
    current_.clear();
    current_.emplace_back(token);
    for (const auto& stage : stages_) RunStage(*stage);
    for (const std::string& text : current_) out += text;
  }

  void Finish(std::string& out) {
    current_.clear();
    for (const auto& stage : stages_) {
      RunStage(*stage);
      stage->Finish(current_);
    }
    for (const std::string& text : current_) out += text;
  }

 private:
  void RunStage(DecodeStage& stage) {
    next_.clear();
    for (std::string& token : current_) stage.Push(std::move(token), next_);
    std::swap(current_, next_);
  }

  DecodeStages stages_;
  std::vector<std::string> current_;
  std::vector<std::string> next_;
};

}  // namespace

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  DecodePipeline pipeline(state_->decoder.get(), DecodeMode());
  std::string out;
  for (const TokenId id : ids) {
    const std::string_view* token = state_->FindToken(id);
    if (token == nullptr || (skip_special_tokens && state_->IsSpecial(id))) continue;
    pipeline.Push(*token, out);
  }
  pipeline.Finish(out);
  return out;
}

struct StreamDecoder::State {
  State(const Tokenizer::State& tokenizer_state, bool skip)
      : tokenizer(tokenizer_state),
        skip_special_tokens(skip),
        pipeline(tokenizer.decoder.get(), {.streaming = true, .by_bytes = &by_bytes}) {}

  // Moves whole characters from `bytes` to `text`, and what is wrong as U+FFFD; the beginning of a
  // character stays, unless nothing follows.
  void TakeCharacters(bool at_end) {
    size_t done = 0;
    while (done < bytes.size()) {
      const Utf8Unit unit = ClassifyUtf8(std::string_view(bytes), done);
      if (unit.kind == Utf8Unit::Kind::kCutOff && !at_end) break;
      const bool good = unit.kind == Utf8Unit::Kind::kCharacter;
      text += good ? std::string_view(bytes).substr(done, unit.length) : kReplacementCharacter;
      done += unit.length;
    }
    bytes.erase(0, done);
  }

  // What of `text` is certain: all but the U+FFFD at its end, which may be half a character that a
  // later token completes.
  std::string Emit(bool everything) {
    size_t end = text.size();
    while (!everything && std::string_view(text).substr(0, end).ends_with(kReplacementCharacter)) {
      end -= kReplacementCharacter.size();
    }
    std::string emitted = text.substr(0, end);
    text.erase(0, end);
    return emitted;
  }

  const Tokenizer::State& tokenizer;
  bool skip_special_tokens;
  bool by_bytes = false;
  DecodePipeline pipeline;
  std::string bytes;  // decoded, not yet known to be characters
  std::string text;   // characters, not yet emitted
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : state_(std::make_unique<State>(*tokenizer.state_, skip_special_tokens)) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::Push(TokenId id) {
  const std::string_view* token = state_->tokenizer.FindToken(id);
  if (token == nullptr || (state_->skip_special_tokens && state_->tokenizer.IsSpecial(id))) {
    return {};
  }
  state_->pipeline.Push(*token, state_->bytes);
  state_->TakeCharacters(false);
  return state_->Emit(state_->by_bytes);
}

std::string StreamDecoder::Flush() {
  state_->pipeline.Finish(state_->bytes);
  state_->TakeCharacters(true);
  return state_->Emit(true);
}

}  // namespace octavo
