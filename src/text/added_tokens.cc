#include "text/added_tokens.h"

#include <utility>

#include "text/unicode.h"

namespace octavo {
namespace {

size_t PreviousCharacter(std::string_view text, size_t position) {
  do {
    --position;
  } while (IsUtf8Continuation(text[position]));
  return position;
}

bool IsInsideWord(std::string_view text, ByteRange range) {
  if (range.begin > 0 && IsWordCharacter(DecodeUtf8(text, PreviousCharacter(text, range.begin)))) {
    return true;
  }
  return range.end < text.size() && IsWordCharacter(DecodeUtf8(text, range.end));
}

size_t SkipSpaceLeft(std::string_view text, size_t position, size_t limit) {
  while (position > limit) {
    const size_t previous = PreviousCharacter(text, position);
    if (!IsWhiteSpace(DecodeUtf8(text, previous))) break;
    position = previous;
  }
  return position;
}

size_t SkipSpaceRight(std::string_view text, size_t position) {
  while (position < text.size() && IsWhiteSpace(DecodeUtf8(text, position))) {
    position += Utf8Length(text[position]);
  }
  return position;
}

}  // namespace

PatternSearch::PatternSearch(const std::vector<std::string>& patterns) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!patterns[i].empty()) Insert(patterns[i], static_cast<int32_t>(i));
  }
  LinkFailures(patterns);
}

void PatternSearch::Insert(std::string_view pattern, int32_t index) {
  int32_t node = 0;
  for (size_t i = pattern.size(); i-- > 0;) {
    const auto [edge, is_new] =
        edges_.try_emplace(EdgeKey(node, pattern[i]), static_cast<int32_t>(nodes_.size()));
    if (is_new) nodes_.emplace_back();
    node = edge->second;
  }
  starts_[static_cast<unsigned char>(pattern.back())] = true;
  int32_t& longest = nodes_[static_cast<size_t>(node)].longest;
  if (longest < 0) longest = index;
}

// A node's failure link needs those of all shorter ones: layer after layer, each pattern taking one
// step.
void PatternSearch::LinkFailures(const std::vector<std::string>& patterns) {
  struct Walk {
    std::string_view rest;
    int32_t node;
  };
  std::vector<Walk> layer;
  for (const std::string& pattern : patterns) {
    if (!pattern.empty()) layer.push_back({pattern, 0});
  }
  std::vector<bool> linked(nodes_.size(), false);
  while (!layer.empty()) {
    std::vector<Walk> next;
    for (const Walk& walk : layer) {
      const char byte = walk.rest.back();
      const int32_t child = edges_.at(EdgeKey(walk.node, byte));
      Node& node = nodes_[static_cast<size_t>(child)];
      if (!linked[static_cast<size_t>(child)]) {
        linked[static_cast<size_t>(child)] = true;
        node.fail = walk.node == 0 ? 0 : Step(nodes_[static_cast<size_t>(walk.node)].fail, byte);
        if (node.longest < 0) node.longest = nodes_[static_cast<size_t>(node.fail)].longest;
      }
      if (walk.rest.size() > 1) next.push_back({walk.rest.substr(0, walk.rest.size() - 1), child});
    }
    layer = std::move(next);
  }
}

int32_t PatternSearch::Step(int32_t node, char byte) const {
  while (node != 0) {
    const auto edge = edges_.find(EdgeKey(node, byte));
    if (edge != edges_.end()) return edge->second;
    node = nodes_[static_cast<size_t>(node)].fail;
  }
  if (!starts_[static_cast<unsigned char>(byte)]) return 0;
  return edges_.at(EdgeKey(0, byte));
}

void PatternSearch::FindFromEnd(std::string_view text, std::vector<Match>& matches) const {
  int32_t node = 0;
  for (size_t i = text.size(); i-- > 0;) {
    node = Step(node, text[i]);
    const int32_t pattern = nodes_[static_cast<size_t>(node)].longest;
    if (pattern >= 0) matches.push_back({i, pattern});
  }
}

AddedTokenSplitter::AddedTokenSplitter(std::vector<AddedToken> tokens,
                                       const std::vector<std::string>& patterns)
    : tokens_(std::move(tokens)), search_(patterns) {
  for (const std::string& pattern : patterns) lengths_.push_back(pattern.size());
}

std::vector<AddedTokenSplitter::Part> AddedTokenSplitter::Split(std::string_view text) const {
  std::vector<PatternSearch::Match> matches;
  if (!search_.empty()) search_.FindFromEnd(text, matches);
  std::vector<Part> parts;
  size_t done = 0;     // end of the last part
  size_t blocked = 0;  // end of the last match, taken or refused
  for (size_t i = matches.size(); i-- > 0;) {
    const auto index = static_cast<size_t>(matches[i].pattern);
    const AddedToken& token = tokens_[index];
    ByteRange range = {matches[i].begin, matches[i].begin + lengths_[index]};
    if (range.begin < blocked) continue;
    blocked = range.end;
    if (token.single_word && IsInsideWord(text, range)) continue;
    // A neighbour that takes white space may already have taken part of this match.
    if (range.end <= done) continue;
    range.begin = token.lstrip ? SkipSpaceLeft(text, range.begin, done) : range.begin;
    range.begin = std::max(range.begin, done);
    if (token.rstrip) range.end = SkipSpaceRight(text, range.end);
    if (done < range.begin) parts.push_back({{done, range.begin}, nullptr});
    parts.push_back({range, &token});
    done = range.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, nullptr});
  return parts;
}

}  // namespace octavo
