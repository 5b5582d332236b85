// tokenizer.json to a Tokenizer.
#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer_state.h"

namespace octavo {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 20;

// Makes the part that json[key] describes; null if there is none.
template <typename T>
Status LoadPart(const Value& json, std::string_view key,
                Result<std::unique_ptr<T>> (*make)(const Value&, int), std::unique_ptr<T>& part) {
  const Value* config = json.Find(key);
  if (config == nullptr || config->is_null()) return OkStatus();
  Result<std::unique_ptr<T>> made = make(*config, 0);
  if (!made.ok()) {
    // "... is not supported" names the kind of part itself.
    const bool named = made.status().message().starts_with(key);
    return named ? made.status() : made.status().Annotate(key);
  }
  part = std::move(made).value();
  return OkStatus();
}

Result<AddedToken> ReadAddedToken(const Value& config) {
  if (!config.is_object()) {
    return CorruptFile(fmt::format("expected an object, found {}", config.type_name()));
  }
  AddedToken token;
  OCTAVO_ASSIGN_OR_RETURN(const int64_t id, config.RequireInt("id"));
  OCTAVO_ASSIGN_OR_RETURN(token.content, config.RequireString("content"));
  OCTAVO_ASSIGN_OR_RETURN(token.single_word, config.GetBool("single_word", false));
  OCTAVO_ASSIGN_OR_RETURN(token.lstrip, config.GetBool("lstrip", false));
  OCTAVO_ASSIGN_OR_RETURN(token.rstrip, config.GetBool("rstrip", false));
  OCTAVO_ASSIGN_OR_RETURN(token.special, config.GetBool("special", false));
  OCTAVO_ASSIGN_OR_RETURN(token.normalized, config.GetBool("normalized", !token.special));
  if (id < 0 || id > INT32_MAX) return CorruptFile(fmt::format("id {} is out of range", id));
  token.id = static_cast<TokenId>(id);
  return token;
}

// Builds the tables of a Tokenizer from its model and added tokens.
class AddedTokenLoader {
 public:
  AddedTokenLoader(Tokenizer::State& state, size_t num_added)
      : state_(state), max_id_(Vocabulary::MaxId(state.model->vocabulary().size() + num_added)) {
    const Vocabulary& vocabulary = state.model->vocabulary();
    state.num_tokens = static_cast<int64_t>(vocabulary.size());
    state.tokens.resize(static_cast<size_t>(vocabulary.id_limit()));
    for (TokenId id = 0; id < vocabulary.id_limit(); ++id) {
      state.tokens[static_cast<size_t>(id)] = vocabulary.Token(id).value_or(std::string_view());
    }
  }

  Status Add(AddedToken token) {
    if (token.content.empty()) return OkStatus();  // can stand nowhere
    if (token.id > max_id_) {
      return CorruptFile(fmt::format("id {} is beyond {}, too far for {} tokens", token.id, max_id_,
                                     state_.num_tokens));
    }
    const auto known = state_.model->vocabulary().Find(token.content);
    if (known && *known != token.id) {
      return CorruptFile(fmt::format("{} has id {}, but {} in the model's vocabulary",
                                     JsonString(token.content), token.id, *known));
    }
    if (const std::string_view* other = state_.FindToken(token.id);
        other != nullptr && *other != token.content) {
      return CorruptFile(fmt::format("{} and {} have the same id {}",
                                     JsonString(std::string(*other)), JsonString(token.content),
                                     token.id));
    }
    const auto [entry, is_new] = state_.added.try_emplace(token.content, token);
    if (!is_new) {
      return CorruptFile(fmt::format("{} is listed twice", JsonString(token.content)));
    }
    if (!known) Place(token.id, entry->first);
    if (token.special) MarkSpecial(token.id);
    (token.normalized ? normalized_ : raw_).push_back(std::move(token));
    return OkStatus();
  }

  // Tokens for normalized text are normalized themselves.
  Status Finish() {
    std::vector<std::string> patterns;
    for (const AddedToken& token : raw_) patterns.push_back(token.content);
    if (!raw_.empty()) state_.raw_splitter.emplace(std::move(raw_), patterns);
    patterns.clear();
    for (const AddedToken& token : normalized_) {
      AlignedText text(token.content, 0);
      if (state_.normalizer) OCTAVO_RETURN_IF_ERROR(state_.normalizer->Normalize(text));
      patterns.emplace_back(text.bytes());
      state_.tokens[static_cast<size_t>(token.id)] =
          state_.normalized_contents.emplace_back(text.bytes());
    }
    if (!normalized_.empty()) state_.normalized_splitter.emplace(std::move(normalized_), patterns);
    return OkStatus();
  }

 private:
  void Place(TokenId id, std::string_view content) {
    const auto index = static_cast<size_t>(id);
    if (index >= state_.tokens.size()) state_.tokens.resize(index + 1);
    state_.tokens[index] = content;
    ++state_.num_tokens;
  }
  void MarkSpecial(TokenId id) {
    const auto index = static_cast<size_t>(id);
    if (index >= state_.special.size()) state_.special.resize(index + 1);
    state_.special[index] = true;
  }

  Tokenizer::State& state_;
  int64_t max_id_;
  std::vector<AddedToken> raw_;
  std::vector<AddedToken> normalized_;
};

Status LoadAddedTokens(const Value& json, Tokenizer::State& state) {
  const Value none = Value::MakeArray();
  const Value* list = json.Find("added_tokens");
  if (list == nullptr || list->is_null()) list = &none;
  if (!list->is_array()) {
    return CorruptFile(fmt::format("expected an array, found {}", list->type_name()));
  }
  AddedTokenLoader loader(state, list->as_array().size());
  for (size_t i = 0; i < list->as_array().size(); ++i) {
    Result<AddedToken> token = ReadAddedToken(list->as_array()[i]);
    Status status = token.status();
    if (status.ok()) status = loader.Add(std::move(token).value());
    if (!status.ok()) return status.Annotate(fmt::format("[{}]", i));
  }
  return loader.Finish();
}

// Puts a stand-in through the post-processor: a special token in front of it is the BOS.
std::optional<TokenId> FindBos(const Tokenizer::State& state) {
  constexpr TokenId kStandIn = -1;
  Encoding text;
  text.ids = {kStandIn};
  text.tokens = {""};
  text.offsets = {{0, 0}};
  text.type_ids = {0};
  text.special_tokens_mask = {0};
  text.sequence_ids = {0};
  const Encoding processed = state.PostProcess({std::move(text)}, true);
  if (processed.ids.empty() || processed.ids.front() == kStandIn) return std::nullopt;
  return processed.ids.front();
}

Status LoadState(const Value& json, Tokenizer::State& state) {
  if (!json.is_object()) {
    return CorruptFile(fmt::format("expected an object, found {}", json.type_name()));
  }
  OCTAVO_RETURN_IF_ERROR(LoadPart(json, "normalizer", MakeNormalizer, state.normalizer));
  OCTAVO_RETURN_IF_ERROR(LoadPart(json, "pre_tokenizer", MakePreTokenizer, state.pre_tokenizer));
  OCTAVO_RETURN_IF_ERROR(LoadPart(json, "model", MakeTokenModel, state.model));
  OCTAVO_RETURN_IF_ERROR(LoadPart(json, "post_processor", MakePostProcessor, state.post_processor));
  OCTAVO_RETURN_IF_ERROR(LoadPart(json, "decoder", MakeDecoder, state.decoder));
  if (state.model == nullptr) return CorruptFile("there is no \"model\"");
  const Status added = LoadAddedTokens(json, state);
  if (!added.ok()) return added.Annotate("added_tokens");
  state.bos = FindBos(state);
  return OkStatus();
}

}  // namespace

Result<Tokenizer> Tokenizer::Load(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  OCTAVO_ASSIGN_OR_RETURN(const Value json, ParseJson(text, path.string()));
  return FromJson(json, path.string());
}

Result<Tokenizer> Tokenizer::FromJson(const Value& json, std::string_view what) {
  auto state = std::make_unique<State>();
  const Status loaded = LoadState(json, *state);
  if (!loaded.ok()) return loaded.Annotate(what);
  return Tokenizer(std::move(state));
}

}  // namespace octavo
