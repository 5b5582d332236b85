// Replace: every match of a pattern by a text, token by token.
#include "text/components/component.h"
#include "text/components/pattern.h"

namespace octavo {
namespace {

class ReplaceStage : public DecodeStage {
 public:
  ReplaceStage(const Pattern& pattern, std::string_view content)
      : searcher_(pattern), content_(content) {}
  // A token that takes the pattern too many steps stays as it is: decoding has no errors.
  void Push(std::string token, std::vector<std::string>& out) override {
    const Status found = searcher_.FindAll(token, matches_);
    if (!found.ok() || matches_.empty()) {
      out.push_back(std::move(token));
      return;
    }
    std::string replaced;
    size_t done = 0;
    for (const ByteRange& match : matches_) {
      replaced.append(token, done, match.begin - done);
      replaced += content_;
      done = match.end;
    }
    replaced.append(token, done);
    out.push_back(std::move(replaced));
  }

 private:
  Pattern::Searcher searcher_;
  std::string_view content_;
  std::vector<ByteRange> matches_;
};

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void AddStages(DecodeMode&, DecodeStages& stages) const override {
    stages.push_back(std::make_unique<ReplaceStage>(pattern_, content_));
  }

 private:
  Pattern pattern_;
  std::string content_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeReplaceDecoder(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(Pattern pattern, Pattern::FromConfig(config));
  OCTAVO_ASSIGN_OR_RETURN(std::string content, config.RequireString("content"));
  return std::unique_ptr<Decoder>(new ReplaceDecoder(std::move(pattern), std::move(content)));
}

}  // namespace octavo
