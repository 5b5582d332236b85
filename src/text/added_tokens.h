// Added tokens: texts that are cut out whole before (or after) normalization, in linear time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/aligned_text.h"
#include "text/token_id.h"

namespace octavo {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // not beside a word character
  bool lstrip = false;       // takes the white space on its left, too
  bool rstrip = false;
  bool normalized = false;  // looked for in normalized text
  bool special = false;     // left out by decoding, if asked to
};

// Finds which pattern begins at each byte. The text is read from its end by an Aho-Corasick
// automaton of the reversed patterns: the longest pattern that ends there, read backwards, is the
// longest one that begins there, so one pass gives all leftmost-longest candidates, however long
// the patterns are and however they overlap.
class PatternSearch {
 public:
  // Pattern i is found as i; an empty one never. Of equal patterns the first is found.
  explicit PatternSearch(const std::vector<std::string>& patterns);

  struct Match {
    size_t begin;
    int32_t pattern;
  };
  // The longest pattern at each byte where one begins, from the last byte to the first.
  void FindFromEnd(std::string_view text, std::vector<Match>& matches) const;
  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Node {
    int32_t fail = 0;      // node of the longest proper suffix
    int32_t longest = -1;  // longest pattern that ends here
  };
  static uint64_t EdgeKey(int32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
  }
  int32_t Step(int32_t node, char byte) const;
  void Insert(std::string_view pattern, int32_t index);
  void LinkFailures(const std::vector<std::string>& patterns);

  std::vector<Node> nodes_ = {Node()};  // node 0 is the root
  std::unordered_map<uint64_t, int32_t> edges_;
  bool starts_[256] = {};  // bytes that leave the root
};

// Cuts texts at added tokens.
class AddedTokenSplitter {
 public:
  // `patterns[i]` is the text to look for in place of tokens[i].content.
  AddedTokenSplitter(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);

  struct Part {
    ByteRange range;
    const AddedToken* token;  // null: text between tokens
  };
  // The parts of `text`, in order, none empty, nothing left out.
  std::vector<Part> Split(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_;
  std::vector<size_t> lengths_;  // of the patterns
  PatternSearch search_;
};

}  // namespace octavo
