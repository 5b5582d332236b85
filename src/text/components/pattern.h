// Pattern: the {"String": ...} or {"Regex": ...} of Split and Replace.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace octavo {

class Value;

class Pattern {
 public:
  // From config["pattern"].
  static Result<Pattern> FromConfig(const Value& config);
  static Pattern Literal(std::string text);  // not empty
  static Result<Pattern> FromRegex(std::string_view regex);

  class Searcher {
   public:
    explicit Searcher(const Pattern& pattern);
    // As Regex::Searcher::FindAll, but nothing is found in an empty text. An empty literal is found
    // before and behind each character.
    Status FindAll(std::string_view text, std::vector<ByteRange>& matches);

   private:
    std::string_view literal_;
    std::optional<Regex::Searcher> regex_;
  };

 private:
  std::string literal_;
  std::optional<Regex> regex_;  // if set, literal_ is not used
};

// What becomes of matches where a text is split.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Appends the pieces that `matches` (offsets within `piece`) make of `piece`. `invert`: what is
// between the matches counts as matched, and the other way round.
void SplitPiece(ByteRange piece, const std::vector<ByteRange>& matches, SplitBehavior behavior,
                bool invert, std::vector<ByteRange>& pieces);

}  // namespace octavo
