// Replace: every match of a pattern by a text.
#include "text/components/component.h"
#include "text/components/pattern.h"

namespace octavo {
namespace {

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  // What is put in has the origin of the last character that it replaces.
  Status Normalize(AlignedText& text) const override {
    Pattern::Searcher searcher(pattern_);
    std::vector<ByteRange> matches;
    OCTAVO_RETURN_IF_ERROR(searcher.FindAll(text.bytes(), matches));
    if (matches.empty()) return OkStatus();
    const size_t grown = text.size() + matches.size() * content_.size();
    OCTAVO_RETURN_IF_ERROR(CheckGrowth(text.size(), grown));
    AlignedText out;
    out.Reserve(grown);
    size_t done = 0;
    for (const ByteRange& match : matches) {
      out.AppendRange(text, {done, match.begin});
      const size_t last = match.end > 0 ? match.end - 1 : 0;
      out.Append(content_, match.end > 0 ? text.OriginOf(last, match.end) : text.OriginOf(0, 0));
      done = match.end;
    }
    out.AppendRange(text, {done, text.size()});
    text = std::move(out);
    return OkStatus();
  }

 private:
  Pattern pattern_;
  std::string content_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeReplaceNormalizer(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(Pattern pattern, Pattern::FromConfig(config));
  OCTAVO_ASSIGN_OR_RETURN(std::string content, config.RequireString("content"));
  return std::unique_ptr<Normalizer>(new ReplaceNormalizer(std::move(pattern), std::move(content)));
}

}  // namespace octavo
