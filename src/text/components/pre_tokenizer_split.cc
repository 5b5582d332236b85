// Split: at the matches of a pattern.
#include <fmt/format.h>

#include "base/json.h"
#include "text/components/component.h"
#include "text/components/pattern.h"

namespace octavo {
namespace {

class SplitPreTokenizer : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  Status PreTokenize(PiecedText& text) const override {
    Pattern::Searcher searcher(pattern_);
    std::vector<ByteRange> matches;
    std::vector<ByteRange> pieces;
    for (const ByteRange& piece : text.pieces) {
      OCTAVO_RETURN_IF_ERROR(searcher.FindAll(text.text.bytes(piece), matches));
      SplitPiece(piece, matches, behavior_, invert_, pieces);
    }
    text.pieces = std::move(pieces);
    return OkStatus();
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

Result<SplitBehavior> BehaviorFromConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string name, config.RequireString("behavior"));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return CorruptFile(
      fmt::format("behavior: expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                  "Contiguous, found {}",
                  JsonString(name.substr(0, 40))));
}

}  // namespace

Result<std::unique_ptr<PreTokenizer>> MakeSplitPreTokenizer(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(Pattern pattern, Pattern::FromConfig(config));
  OCTAVO_ASSIGN_OR_RETURN(const SplitBehavior behavior, BehaviorFromConfig(config));
  OCTAVO_ASSIGN_OR_RETURN(const bool invert, config.GetBool("invert", false));
  return std::unique_ptr<PreTokenizer>(new SplitPreTokenizer(std::move(pattern), behavior, invert));
}

}  // namespace octavo
