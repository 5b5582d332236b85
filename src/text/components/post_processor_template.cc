// TemplateProcessing: the order in which sequences and special tokens follow each other.
#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "text/components/component.h"

namespace octavo {
namespace {

struct SpecialToken {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;
};

struct Piece {
  int sequence = -1;                      // 0 or 1; -1: a special token
  const SpecialToken* special = nullptr;  // owned by the post-processor's map
  int type_id = 0;
};

using SpecialTokens = std::map<std::string, SpecialToken, std::less<>>;

class TemplatePostProcessor : public PostProcessor {
 public:
  TemplatePostProcessor(std::unique_ptr<SpecialTokens> special, std::vector<Piece> single,
                        std::vector<Piece> pair)
      : special_(std::move(special)), single_(std::move(single)), pair_(std::move(pair)) {}

  std::vector<Encoding> Process(std::vector<Encoding> sequences,
                                bool add_special_tokens) const override {
    if (sequences.empty() || sequences.size() > 2) return sequences;
    std::vector<Encoding> out;
    for (const Piece& piece : sequences.size() == 1 ? single_ : pair_) {
      if (piece.sequence >= 0) {
        out.push_back(sequences[static_cast<size_t>(piece.sequence)]);
        out.back().type_ids.assign(out.back().ids.size(), piece.type_id);
      } else if (add_special_tokens) {
        out.push_back(EncodeSpecial(piece));
      }
    }
    return out;
  }

 private:
  static Encoding EncodeSpecial(const Piece& piece) {
    Encoding encoding;
    const size_t count = piece.special->ids.size();
    encoding.ids = piece.special->ids;
    encoding.tokens = piece.special->tokens;
    encoding.offsets.assign(count, {0, 0});
    encoding.type_ids.assign(count, piece.type_id);
    encoding.special_tokens_mask.assign(count, 1);
    encoding.sequence_ids.assign(count, -1);
    return encoding;
  }

  std::unique_ptr<SpecialTokens> special_;
  std::vector<Piece> single_;
  std::vector<Piece> pair_;
};

Result<SpecialToken> ReadSpecialToken(const Value& config) {
  SpecialToken out;
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* ids, RequireArray(config, "ids"));
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* tokens, RequireArray(config, "tokens"));
  if (ids->size() != tokens->size()) {
    return CorruptFile(fmt::format("{} ids for {} tokens", ids->size(), tokens->size()));
  }
  for (const Value& id : *ids) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) {
      return CorruptFile(fmt::format("ids[{}]: expected a token id, found {}", out.ids.size(),
                                     WriteJson(id).substr(0, 40)));
    }
    out.ids.push_back(static_cast<TokenId>(id.as_int()));
  }
  for (const Value& token : *tokens) {
    if (!token.is_string()) {
      return CorruptFile(fmt::format("tokens[{}]: expected a string, found {}", out.tokens.size(),
                                     token.type_name()));
    }
    out.tokens.push_back(token.as_string());
  }
  return out;
}

Result<Piece> ReadPiece(const Value& config, int num_sequences, const SpecialTokens& special) {
  Piece piece;
  const Value* sequence = config.Find("Sequence");
  const Value* token = config.Find("SpecialToken");
  const Value* item = sequence != nullptr ? sequence : token;
  if (item == nullptr)
    return CorruptFile("expected {\"Sequence\": ...} or {\"SpecialToken\": ...}");
  OCTAVO_ASSIGN_OR_RETURN(const std::string id, item->RequireString("id"));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t type_id, item->GetInt("type_id", 0));
  if (type_id < 0 || type_id > INT32_MAX) {
    return CorruptFile(fmt::format("type_id: {} is out of range", type_id));
  }
  piece.type_id = static_cast<int>(type_id);
  if (sequence != nullptr) {
    if (id != "A" && !(id == "B" && num_sequences == 2)) {
      return CorruptFile(fmt::format("Sequence: there is no sequence {} in a template for {}",
                                     JsonString(id.substr(0, 40)), num_sequences));
    }
    piece.sequence = id == "A" ? 0 : 1;
    return piece;
  }
  const auto found = special.find(id);
  if (found == special.end()) {
    return CorruptFile(
        fmt::format("SpecialToken: {} is not in \"special_tokens\"", JsonString(id.substr(0, 40))));
  }
  piece.special = &found->second;
  return piece;
}

// A template names each of its sequences once: more would multiply the text.
Result<std::vector<Piece>> ReadTemplate(const Value& config, std::string_view key,
                                        int num_sequences, const SpecialTokens& special) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* configs, RequireArray(config, key));
  std::vector<Piece> pieces;
  int seen[2] = {0, 0};
  for (const Value& item : *configs) {
    Result<Piece> piece = ReadPiece(item, num_sequences, special);
    if (!piece.ok()) return piece.status().Annotate(fmt::format("{}[{}]", key, pieces.size()));
    if (piece->sequence >= 0) ++seen[piece->sequence];
    pieces.push_back(*piece);
  }
  if (seen[0] != 1 || seen[1] != num_sequences - 1) {
    return CorruptFile(
        fmt::format("{}: expected each of {} once", key, num_sequences == 1 ? "A" : "A and B"));
  }
  return pieces;
}

}  // namespace

Result<std::unique_ptr<PostProcessor>> MakeTemplatePostProcessor(const Value& config, int) {
  auto special = std::make_unique<SpecialTokens>();
  if (const Value* tokens = config.Find("special_tokens"); tokens != nullptr) {
    if (!tokens->is_object()) {
      return CorruptFile(
          fmt::format("special_tokens: expected an object, found {}", tokens->type_name()));
    }
    for (const auto& [name, token] : tokens->as_object()) {
      Result<SpecialToken> read = ReadSpecialToken(token);
      if (!read.ok()) {
        return read.status().Annotate(
            fmt::format("special_tokens.{}", JsonString(name.substr(0, 40))));
      }
      special->emplace(name, std::move(read).value());
    }
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Piece> single, ReadTemplate(config, "single", 1, *special));
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Piece> pair, ReadTemplate(config, "pair", 2, *special));
  return std::unique_ptr<PostProcessor>(
      new TemplatePostProcessor(std::move(special), std::move(single), std::move(pair)));
}

}  // namespace octavo
