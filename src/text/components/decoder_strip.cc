// Strip: up to `start` times a character from the beginning of each token, up to `stop` from its
// end.
#include <fmt/format.h>

#include "base/json.h"
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

struct StripConfig {
  std::string content;  // one character
  int64_t start = 0;
  int64_t stop = 0;
};

// Removes `content` from the front at most `limit` times; says how often.
int64_t StripFront(std::string& text, const StripConfig& config, int64_t limit) {
  int64_t count = 0;
  size_t at = 0;
  while (count < limit && std::string_view(text).substr(at).starts_with(config.content)) {
    at += config.content.size();
    ++count;
  }
  text.erase(0, at);
  return count;
}

int64_t StripBack(std::string& text, const StripConfig& config, int64_t limit) {
  int64_t count = 0;
  while (count < limit && text.ends_with(config.content)) {
    text.resize(text.size() - config.content.size());
    ++count;
  }
  return count;
}

class TokenStripStage : public DecodeStage {
 public:
  explicit TokenStripStage(const StripConfig& config) : config_(config) {}
  void Push(std::string token, std::vector<std::string>& out) override {
    StripFront(token, config_, config_.start);
    StripBack(token, config_, config_.stop);
    out.push_back(std::move(token));
  }

 private:
  const StripConfig& config_;
};

// The parts that arrive are one token: its beginning is stripped as it comes, and what could be
// stripped from its end waits.
class StreamStripStage : public DecodeStage {
 public:
  explicit StreamStripStage(const StripConfig& config)
      : config_(config), start_left_(config.start) {}
  void Push(std::string token, std::vector<std::string>& out) override {
    if (start_left_ > 0) {
      start_left_ -= StripFront(token, config_, start_left_);
      if (token.empty()) return;
      start_left_ = 0;
    }
    std::string text;
    for (; waiting_ > 0; --waiting_) text += config_.content;
    text += token;
    waiting_ = StripBack(text, config_, config_.stop);
    out.push_back(std::move(text));
  }

 private:
  const StripConfig& config_;
  int64_t start_left_;
  int64_t waiting_ = 0;  // how often the content stands at the end of what came
};

class StripDecoder : public Decoder {
 public:
  explicit StripDecoder(StripConfig config) : config_(std::move(config)) {}
  void AddStages(DecodeMode& mode, DecodeStages& stages) const override {
    if (mode.streaming && mode.fused) {
      stages.push_back(std::make_unique<StreamStripStage>(config_));
    } else {
      stages.push_back(std::make_unique<TokenStripStage>(config_));
    }
  }

 private:
  StripConfig config_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeStripDecoder(const Value& config, int) {
  StripConfig settings;
  OCTAVO_ASSIGN_OR_RETURN(settings.content, config.RequireString("content"));
  OCTAVO_ASSIGN_OR_RETURN(settings.start, config.RequireInt("start"));
  OCTAVO_ASSIGN_OR_RETURN(settings.stop, config.RequireInt("stop"));
  if (CountCodePoints(settings.content) != 1 || settings.start < 0 || settings.stop < 0) {
    return CorruptFile(
        fmt::format("expected one character as content and counts that are not "
                    "negative, found {}",
                    WriteJson(config).substr(0, 100)));
  }
  return std::unique_ptr<Decoder>(new StripDecoder(std::move(settings)));
}

}  // namespace octavo
