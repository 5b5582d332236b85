// BPE: a piece starts as its characters; then, again and again, the neighbours whose merge has the
// lowest rank (the leftmost of equals) become one token.
#include "text/components/bpe.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <queue>

#include "base/json.h"
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {

MergeTable::MergeTable(size_t max_merges) : slots_(std::bit_ceil(max_merges * 2 + 1)) {}

size_t MergeTable::SlotOf(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  uint64_t hash = key * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 32;
  size_t slot = hash & mask;
  while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::Insert(TokenId left, TokenId right, Merge merge) {
  const uint64_t key = Key(left, right);
  slots_[SlotOf(key)] = {key, merge};
}

const MergeTable::Merge* MergeTable::Find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[SlotOf(Key(left, right))];
  return slot.key == kEmpty ? nullptr : &slot.merge;
}

namespace {

struct BpeConfig {
  std::optional<TokenId> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is a token is that token
  bool never_merge = false;    // dropout 1
  std::string prefix;          // of all characters of a piece but the first
  std::string suffix;          // of the last

  // Whether pieces may be cut: not where a token depends on its place in the piece, or where
  // characters can be dropped (which shifts the offsets of all that follow).
  bool MayCut() const { return unknown && !ignore_merges && prefix.empty() && suffix.empty(); }
};

// A piece as a chain of tokens that are being merged.
class Chain {
 public:
  void Add(TokenId id, size_t length) {
    const auto index = static_cast<int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({id, static_cast<int32_t>(length), index - 1, -1});
  }

  void Merge(const MergeTable& merges) {
    std::vector<Candidate> candidates;
    candidates.reserve(symbols_.size());
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols_.size()); ++i) {
      Propose(merges, i, candidates);
    }
    std::priority_queue queue(Later(), std::move(candidates));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      if (IsStale(best)) continue;
      Join(best);
      candidates.clear();
      if (At(best.left).previous >= 0) Propose(merges, At(best.left).previous, candidates);
      Propose(merges, best.left, candidates);
      for (const Candidate& candidate : candidates) queue.push(candidate);
    }
  }

  // Lengths add up from the beginning of the piece: characters that were dropped make what follows
  // them come too early, as in the tokenizers library.
  void AppendTo(std::vector<ModelToken>& tokens) const {
    int32_t begin = 0;
    for (const Symbol& symbol : symbols_) {
      if (symbol.length == 0) continue;
      tokens.push_back({symbol.id, begin, begin + symbol.length});
      begin += symbol.length;
    }
  }

 private:
  struct Symbol {
    TokenId id;
    int32_t length;  // bytes; 0 once it has become part of its left neighbour
    int32_t previous;
    int32_t next;
  };
  struct Candidate {
    MergeTable::Merge merge;
    int32_t left;
    TokenId left_id;
    TokenId right_id;
  };
  struct Later {
    bool operator()(const Candidate& a, const Candidate& b) const {
      return a.merge.rank != b.merge.rank ? a.merge.rank > b.merge.rank : a.left > b.left;
    }
  };

  Symbol& At(int32_t index) { return symbols_[static_cast<size_t>(index)]; }

  void Propose(const MergeTable& merges, int32_t left, std::vector<Candidate>& candidates) {
    const Symbol& symbol = At(left);
    if (symbol.next < 0) return;
    const TokenId right = At(symbol.next).id;
    const MergeTable::Merge* merge = merges.Find(symbol.id, right);
    if (merge != nullptr) candidates.push_back({*merge, left, symbol.id, right});
  }

  // Whether one of the two has been merged since.
  bool IsStale(const Candidate& candidate) {
    const Symbol& left = At(candidate.left);
    return left.length == 0 || left.next < 0 || left.id != candidate.left_id ||
           At(left.next).id != candidate.right_id;
  }

  void Join(const Candidate& candidate) {
    Symbol& left = At(candidate.left);
    Symbol& right = At(left.next);
    left.id = candidate.merge.result;
    left.length += right.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0) At(left.next).previous = candidate.left;
  }

  std::vector<Symbol> symbols_;
};

class BpeModel : public TokenModel {
 public:
  BpeModel(Vocabulary vocabulary, MergeTable merges, MergeTable junctions, BpeConfig config)
      : vocabulary_(std::move(vocabulary)),
        merges_(std::move(merges)),
        junctions_(std::move(junctions)),
        config_(std::move(config)) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_tokens_[byte] = vocabulary_.Find(fmt::format("<0x{:02X}>", byte));
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  void Tokenize(std::string_view piece, std::vector<ModelToken>& tokens) const override {
    if (config_.ignore_merges) {
      if (const auto whole = vocabulary_.Find(piece)) {
        tokens.push_back({*whole, 0, static_cast<int32_t>(piece.size())});
        return;
      }
    }
    Chain chain = Characters(piece);
    if (!config_.never_merge) chain.Merge(merges_);
    chain.AppendTo(tokens);
  }

  // Between two characters that no merge brings together.
  void Cut(std::string_view piece, std::vector<ByteRange>& parts) const override {
    if (!config_.MayCut()) return TokenModel::Cut(piece, parts);
    size_t begin = 0;
    std::optional<TokenId> previous;
    for (size_t i = 0; i < piece.size();) {
      const size_t length = Utf8Length(piece[i]);
      const std::optional<TokenId> current = vocabulary_.Find(piece.substr(i, length));
      if (previous && current && junctions_.Find(*previous, *current) == nullptr) {
        parts.push_back({begin, i});
        begin = i;
      }
      previous = current;
      i += length;
    }
    parts.push_back({begin, piece.size()});
  }

 private:
  // Each character as its token, else as the tokens of its bytes, else as unknown (or not at all).
  Chain Characters(std::string_view piece) const {
    Chain chain;
    size_t unknown = 0;  // bytes of unknown characters not yet in the chain
    const auto flush_unknown = [&] {
      if (unknown > 0) chain.Add(*config_.unknown, unknown);
      unknown = 0;
    };
    std::string spelled;
    for (size_t i = 0; i < piece.size();) {
      const std::string_view character = piece.substr(i, Utf8Length(piece[i]));
      const std::string_view token =
          Spell(character, i == 0, i + character.size() == piece.size(), spelled);
      i += character.size();
      if (const auto id = vocabulary_.Find(token)) {
        flush_unknown();
        chain.Add(*id, character.size());
      } else if (config_.byte_fallback && HasByteTokens(token)) {
        // Unknown characters before it come after it: so does the tokenizers library.
        for (const char byte : token) chain.Add(*ByteToken(byte), 1);
      } else if (config_.unknown) {
        if (!config_.fuse_unknown) flush_unknown();
        unknown += character.size();
      }
    }
    flush_unknown();
    return chain;
  }

  // The character with the prefix and suffix that its place asks for; `buffer` keeps it.
  std::string_view Spell(std::string_view character, bool is_first, bool is_last,
                         std::string& buffer) const {
    const bool prefixed = !is_first && !config_.prefix.empty();
    const bool suffixed = is_last && !config_.suffix.empty();
    if (!prefixed && !suffixed) return character;
    buffer = prefixed ? config_.prefix : std::string();
    buffer += character;
    if (suffixed) buffer += config_.suffix;
    return buffer;
  }

  const std::optional<TokenId>& ByteToken(char byte) const {
    return byte_tokens_[static_cast<unsigned char>(byte)];
  }
  bool HasByteTokens(std::string_view text) const {
    for (const char byte : text) {
      if (!ByteToken(byte)) return false;
    }
    return true;
  }

  Vocabulary vocabulary_;
  MergeTable merges_;
  MergeTable junctions_;  // characters that some merge brings together
  BpeConfig config_;
  std::optional<TokenId> byte_tokens_[256];
};

Result<BpeConfig> ReadConfig(const Value& config, const Vocabulary& vocabulary) {
  BpeConfig out;
  OCTAVO_ASSIGN_OR_RETURN(out.fuse_unknown, config.GetBool("fuse_unk", false));
  OCTAVO_ASSIGN_OR_RETURN(out.byte_fallback, config.GetBool("byte_fallback", false));
  OCTAVO_ASSIGN_OR_RETURN(out.ignore_merges, config.GetBool("ignore_merges", false));
  OCTAVO_ASSIGN_OR_RETURN(out.prefix, config.GetString("continuing_subword_prefix", ""));
  OCTAVO_ASSIGN_OR_RETURN(out.suffix, config.GetString("end_of_word_suffix", ""));
  OCTAVO_ASSIGN_OR_RETURN(const double dropout, config.GetDouble("dropout", 0.0));
  if (dropout != 0.0 && dropout != 1.0) {
    return Unsupported(fmt::format(
        "dropout: {} makes the tokens of a text random; set it to null in tokenizer.json",
        dropout));
  }
  out.never_merge = dropout == 1.0;
  const Value* unknown = config.Find("unk_token");
  if (unknown == nullptr || unknown->is_null()) return out;
  OCTAVO_ASSIGN_OR_RETURN(const std::string token, config.GetString("unk_token", ""));
  out.unknown = vocabulary.Find(token);
  if (!out.unknown) {
    return CorruptFile(fmt::format("unk_token: {} is not in the vocabulary", JsonString(token)));
  }
  return out;
}

struct MergeText {
  std::string_view left;
  std::string_view right;
};

// "a b", or ["a", "b"] where tokens may have spaces.
std::optional<MergeText> ParseMerge(const Value& merge) {
  if (merge.is_string()) {
    const std::string_view text = merge.as_string();
    const size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos) return std::nullopt;
    return MergeText{text.substr(0, space), text.substr(space + 1)};
  }
  if (!merge.is_array() || merge.as_array().size() != 2) return std::nullopt;
  const Value& left = merge.as_array()[0];
  const Value& right = merge.as_array()[1];
  if (!left.is_string() || !right.is_string()) return std::nullopt;
  return MergeText{left.as_string(), right.as_string()};
}

// The merges of a file, and the pairs of characters at whose boundary they join.
struct Merges {
  MergeTable table;
  MergeTable junctions;
};

std::string_view LastCharacter(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && IsUtf8Continuation(text[begin - 1])) --begin;
  return begin == 0 ? text : text.substr(begin - 1);
}

void InsertJunction(const MergeText& merge, const Vocabulary& vocabulary, MergeTable& junctions) {
  if (merge.left.empty() || merge.right.empty()) return;
  const auto left = vocabulary.Find(LastCharacter(merge.left));
  const auto right = vocabulary.Find(merge.right.substr(0, Utf8Length(merge.right[0])));
  if (left && right) junctions.Insert(*left, *right, {});
}

Result<Merges> ReadMerges(const Value& config, const Vocabulary& vocabulary,
                          const BpeConfig& settings) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* merges, RequireArray(config, "merges"));
  Merges out = {MergeTable(merges->size()), MergeTable(settings.MayCut() ? merges->size() : 0)};
  std::string joined;
  for (size_t i = 0; i < merges->size(); ++i) {
    const Value& merge = (*merges)[i];
    if (merge.is_string() && merge.as_string().starts_with("#version")) continue;
    const std::optional<MergeText> text = ParseMerge(merge);
    if (!text) {
      return CorruptFile(fmt::format("merges[{}]: expected \"a b\" or [\"a\", \"b\"], found {}", i,
                                     WriteJson(merge).substr(0, 80)));
    }
    std::string_view tail = text->right;
    if (tail.starts_with(settings.prefix)) tail.remove_prefix(settings.prefix.size());
    joined = text->left;
    joined += tail;
    const auto left = vocabulary.Find(text->left);
    const auto right = vocabulary.Find(text->right);
    const auto result = vocabulary.Find(joined);
    if (!left || !right || !result) {
      const std::string_view missing = !left ? text->left : !right ? text->right : joined;
      return CorruptFile(fmt::format("merges[{}]: token {} is not in the vocabulary", i,
                                     JsonString(std::string(missing.substr(0, 80)))));
    }
    out.table.Insert(*left, *right, {static_cast<int32_t>(i), *result});
    if (settings.MayCut()) InsertJunction(*text, vocabulary, out.junctions);
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<TokenModel>> MakeBpeModel(const Value& config, int) {
  const Value* vocab = config.Find("vocab");
  Result<Vocabulary> vocabulary = Vocabulary::FromJson(vocab == nullptr ? Value() : *vocab);
  if (!vocabulary.ok()) return vocabulary.status().Annotate("vocab");
  OCTAVO_ASSIGN_OR_RETURN(BpeConfig settings, ReadConfig(config, *vocabulary));
  OCTAVO_ASSIGN_OR_RETURN(Merges merges, ReadMerges(config, *vocabulary, settings));
  return std::unique_ptr<TokenModel>(
      new BpeModel(std::move(vocabulary).value(), std::move(merges.table),
                   std::move(merges.junctions), std::move(settings)));
}

}  // namespace octavo
