#include "text/components/pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/value.h"

namespace octavo {

Result<Pattern> Pattern::FromConfig(const Value& config) {
  const Value* pattern = config.Find("pattern");
  if (pattern != nullptr) {
    if (const Value* text = pattern->Find("String"); text != nullptr && text->is_string()) {
      return text->as_string().empty() ? FromRegex("") : Literal(text->as_string());
    }
    if (const Value* regex = pattern->Find("Regex"); regex != nullptr && regex->is_string()) {
      return FromRegex(regex->as_string());
    }
  }
  return CorruptFile("pattern: expected {\"String\": ...} or {\"Regex\": ...}");
}

Pattern Pattern::Literal(std::string text) {
  OCTAVO_CHECK(!text.empty());
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Result<Pattern> Pattern::FromRegex(std::string_view regex) {
  Result<Regex> compiled = Regex::Compile(regex);
  if (!compiled.ok()) return compiled.status().Annotate("pattern");
  Pattern pattern;
  pattern.regex_ = std::move(compiled).value();
  return pattern;
}

Pattern::Searcher::Searcher(const Pattern& pattern) : literal_(pattern.literal_) {
  if (pattern.regex_) regex_.emplace(*pattern.regex_);
}

Status Pattern::Searcher::FindAll(std::string_view text, std::vector<ByteRange>& matches) {
  matches.clear();
  if (text.empty()) return OkStatus();
  if (regex_) return regex_->FindAll(text, matches);
  for (size_t at = text.find(literal_); at != text.npos; at = text.find(literal_, at)) {
    matches.push_back({at, at + literal_.size()});
    at += literal_.size();
  }
  return OkStatus();
}

namespace {

// A stretch of the text that is a match, or lies between two.
struct Stretch {
  ByteRange range;
  bool matched;
};

std::vector<Stretch> Stretches(size_t size, const std::vector<ByteRange>& matches, bool invert) {
  std::vector<Stretch> stretches;
  size_t done = 0;
  for (const ByteRange& match : matches) {
    if (done != match.begin) stretches.push_back({{done, match.begin}, invert});
    stretches.push_back({match, !invert});
    done = match.end;
  }
  if (done != size) stretches.push_back({{done, size}, invert});
  return stretches;
}

// Whether a stretch continues the one before it (or, merged with the next, behind it).
bool Continues(SplitBehavior behavior, const Stretch& stretch, bool neighbour_matched) {
  if (behavior == SplitBehavior::kContiguous) return stretch.matched == neighbour_matched;
  return stretch.matched && !neighbour_matched;
}

}  // namespace

void SplitPiece(ByteRange piece, const std::vector<ByteRange>& matches, SplitBehavior behavior,
                bool invert, std::vector<ByteRange>& pieces) {
  std::vector<Stretch> stretches = Stretches(piece.end - piece.begin, matches, invert);
  const bool joins = behavior != SplitBehavior::kRemoved && behavior != SplitBehavior::kIsolated;
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(stretches.begin(), stretches.end());
  std::vector<ByteRange> merged;
  bool neighbour_matched = false;
  for (const Stretch& stretch : stretches) {
    if (behavior == SplitBehavior::kRemoved && stretch.matched) continue;
    if (joins && !merged.empty() && Continues(behavior, stretch, neighbour_matched)) {
      merged.back().begin = std::min(merged.back().begin, stretch.range.begin);
      merged.back().end = std::max(merged.back().end, stretch.range.end);
    } else {
      merged.push_back(stretch.range);
    }
    neighbour_matched = stretch.matched;
  }
  if (backwards) std::reverse(merged.begin(), merged.end());
  for (const ByteRange& range : merged) {
    if (range.begin == range.end) continue;
    pieces.push_back({piece.begin + range.begin, piece.begin + range.end});
  }
}

}  // namespace octavo
