#include "convert/gguf_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/gguf_metadata.h"
#include "convert/gguf_vocabulary.h"

namespace octavo {

namespace {

using Object = Value::Object;
using Array = Value::Array;

constexpr std::string_view kSpaceMark = "\u2581";  // SentencePiece's visible space

// What the metadata says about the tokenizer, apart from its kind.
struct Source {
  const Value& metadata;
  GgufVocabulary vocabulary;
  std::optional<std::string_view> bos = {}, eos = {}, pad = {}, unk = {};
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
};

// The parts of tokenizer.json that depend on the kind of tokenizer.
struct Pipeline {
  Value normalizer, pre_tokenizer, decoder, model;
};

Value ByteLevel(bool add_prefix_space, bool use_regex = true) {
  return Object{{"type", "ByteLevel"},
                {"add_prefix_space", add_prefix_space},
                {"trim_offsets", true},
                {"use_regex", use_regex}};
}

Value Sequence(Value first, Value second) {
  return Object{{"type", "Sequence"},
                {"pretokenizers", Array{std::move(first), std::move(second)}}};
}

Value Gpt2Split(std::string_view, bool add_prefix_space) {
  return ByteLevel(add_prefix_space);
}

// Every digit alone, then GPT-2's split.
Value SmolLmSplit(std::string_view, bool add_prefix_space) {
  return Sequence(Object{{"type", "Digits"}, {"individual_digits", true}},
                  ByteLevel(add_prefix_space));
}

// A regular expression instead of GPT-2's.
Value RegexSplit(std::string_view regex, bool add_prefix_space) {
  return Sequence(Object{{"type", "Split"},
                         {"pattern", Object{{"Regex", regex}}},
                         {"behavior", "Isolated"},
                         {"invert", false}},
                  ByteLevel(add_prefix_space, /*use_regex=*/false));
}

// The expressions of the families' tokenizer.json.
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// tokenizer.ggml.pre names a way to split text before byte-level BPE, and with it what else the
// family's tokenizer.json says.
struct PreTokenizer {
  std::string_view name;
  Value (*make)(std::string_view regex, bool add_prefix_space);
  std::string_view regex = {};
  bool ignore_merges = false;  // a piece that is a token is not built from merges
  bool nfc = false;            // text is composed first
  bool add_bos = false;        // where the file does not say
};

constexpr std::array kPreTokenizers = {
    PreTokenizer{"gpt2", Gpt2Split},
    PreTokenizer{"gpt-2", Gpt2Split},
    PreTokenizer{"smollm", SmolLmSplit},
    PreTokenizer{"llama-bpe", RegexSplit, kLlama3Regex, /*ignore_merges=*/true, /*nfc=*/false,
                 /*add_bos=*/true},
    PreTokenizer{"llama3", RegexSplit, kLlama3Regex, /*ignore_merges=*/true, /*nfc=*/false,
                 /*add_bos=*/true},
    PreTokenizer{"qwen2", RegexSplit, kQwen2Regex, /*ignore_merges=*/false, /*nfc=*/true},
    PreTokenizer{"tekken", RegexSplit, kTekkenRegex, /*ignore_merges=*/true, /*nfc=*/false,
                 /*add_bos=*/true},
};

Result<const PreTokenizer*> FindPreTokenizer(const Value& metadata) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string name, metadata.RequireString("tokenizer.ggml.pre"));
  std::string known;
  for (const PreTokenizer& pre_tokenizer : kPreTokenizers) {
    if (pre_tokenizer.name == name) return &pre_tokenizer;
    known += (known.empty() ? "" : ", ") + std::string(pre_tokenizer.name);
  }
  return Unsupported(fmt::format("tokenizer.ggml.pre is {}, only {} are imported", name, known));
}

Value OrNull(std::optional<std::string_view> text) {
  return text.has_value() ? Value(*text) : Value();
}

Value BpeModel(const GgufVocabulary& vocabulary, const std::vector<GgufMerge>& merges,
               std::optional<std::string_view> unk, bool byte_fallback, bool ignore_merges) {
  Object ids;
  for (const std::string_view token : vocabulary.tokens()) {
    ids.emplace_back(token, static_cast<int64_t>(ids.size()));
  }
  Array pairs;
  for (const auto& [left, right] : merges) pairs.push_back(Array{left, right});
  return Object{
      {"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", OrNull(unk)},
      {"continuing_subword_prefix", nullptr},
      {"end_of_word_suffix", nullptr},
      {"fuse_unk", unk.has_value()},
      {"byte_fallback", byte_fallback},
      {"ignore_merges", ignore_merges},
      {"vocab", std::move(ids)},
      {"merges", std::move(pairs)},
  };
}

// Model `gpt2`: BPE over bytes written as letters.
Result<Pipeline> ByteLevelBpe(const Source& source, const PreTokenizer& pre_tokenizer) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<GgufMerge> merges,
                          source.vocabulary.ReadMerges(source.metadata));
  return Pipeline{.normalizer = pre_tokenizer.nfc ? Value(Object{{"type", "NFC"}}) : Value(),
                  .pre_tokenizer = pre_tokenizer.make(pre_tokenizer.regex, source.add_space_prefix),
                  .decoder = ByteLevel(true),
                  .model = BpeModel(source.vocabulary, merges, std::nullopt,
                                    /*byte_fallback=*/false, pre_tokenizer.ignore_merges)};
}

Value Replace(std::string_view pattern, std::string_view content) {
  return Object{
      {"type", "Replace"}, {"pattern", Object{{"String", pattern}}}, {"content", content}};
}

// Model `llama`: SentencePiece's BPE, unknown characters as byte tokens.
Result<Pipeline> SentencePieceBpe(const Source& source) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<GgufMerge> merges,
                          source.vocabulary.MergesFromScores(source.metadata));
  Array normalizers;
  Array decoders = {Replace(kSpaceMark, " "), Object{{"type", "ByteFallback"}},
                    Object{{"type", "Fuse"}}};
  if (source.add_space_prefix) {
    normalizers.push_back(Object{{"type", "Prepend"}, {"prepend", kSpaceMark}});
    decoders.push_back(Object{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(Replace(" ", kSpaceMark));
  return Pipeline{
      .normalizer = Object{{"type", "Sequence"}, {"normalizers", std::move(normalizers)}},
      .pre_tokenizer = nullptr,
      .decoder = Object{{"type", "Sequence"}, {"decoders", std::move(decoders)}},
      .model = BpeModel(source.vocabulary, merges, source.unk, /*byte_fallback=*/true,
                        /*ignore_merges=*/false)};
}

// Tokens that are looked for in the text before anything else.
Value AddedTokens(const GgufVocabulary& vocabulary) {
  Array added;
  for (size_t id = 0; id < vocabulary.tokens().size(); ++id) {
    const GgufTokenKind kind = vocabulary.kind(id);
    const bool special = kind == GgufTokenKind::kControl || kind == GgufTokenKind::kUnknown;
    if (!special && kind != GgufTokenKind::kUserDefined) continue;
    added.push_back(Object{
        {"id", static_cast<int64_t>(id)},
        {"content", vocabulary.tokens()[id]},
        {"single_word", false},
        {"lstrip", false},
        {"rstrip", false},
        {"normalized", false},
        {"special", special},
    });
  }
  return added;
}

// Puts BOS before and EOS behind each text, as far as the file asks for it; else null.
Result<Value> PostProcessor(const Source& source) {
  if (!source.add_bos && !source.add_eos) return Value();
  if ((source.add_bos && !source.bos) || (source.add_eos && !source.eos)) {
    return CorruptFile("tokenizer.ggml asks for a BOS or EOS token that it does not name");
  }
  const auto special = [](std::string_view token, int type_id) {
    return Object{{"SpecialToken", Object{{"id", token}, {"type_id", type_id}}}};
  };
  const auto append = [&](Array& parts, std::string_view sequence, int type_id) {
    if (source.add_bos) parts.push_back(special(*source.bos, type_id));
    parts.push_back(Object{{"Sequence", Object{{"id", sequence}, {"type_id", type_id}}}});
    if (source.add_eos) parts.push_back(special(*source.eos, type_id));
  };
  Array single;
  append(single, "A", 0);
  Array pair = single;
  append(pair, "B", 1);

  Value tokens = Value::MakeObject();
  const auto define = [&](std::string_view token, std::string_view key) -> Status {
    OCTAVO_ASSIGN_OR_RETURN(const int64_t id, source.metadata.RequireInt(key));
    tokens.Set(token, Object{{"id", token}, {"ids", Array{id}}, {"tokens", Array{token}}});
    return OkStatus();
  };
  if (source.add_bos) {
    OCTAVO_RETURN_IF_ERROR(define(*source.bos, "tokenizer.ggml.bos_token_id"));
  }
  if (source.add_eos) {
    OCTAVO_RETURN_IF_ERROR(define(*source.eos, "tokenizer.ggml.eos_token_id"));
  }
  return Value(Object{{"type", "TemplateProcessing"},
                      {"single", std::move(single)},
                      {"pair", std::move(pair)},
                      {"special_tokens", std::move(tokens)}});
}

Result<Value> TokenizerConfig(const Source& source) {
  Value config =
      Object{{"add_bos_token", source.add_bos}, {"add_prefix_space", source.add_space_prefix}};
  const auto set = [&](std::string_view name, std::optional<std::string_view> token) {
    if (token.has_value()) config.Set(name, *token);
  };
  set("bos_token", source.bos);
  set("eos_token", source.eos);
  set("pad_token", source.pad);
  set("unk_token", source.unk);
  OCTAVO_ASSIGN_OR_RETURN(const std::string chat_template,
                          source.metadata.GetString("tokenizer.chat_template", ""));
  if (!chat_template.empty()) {
    // The control tokens that the template writes are those a chat needs kept whole.
    Array named;
    for (size_t id = 0; id < source.vocabulary.tokens().size(); ++id) {
      const std::string_view token = source.vocabulary.tokens()[id];
      if (source.vocabulary.kind(id) == GgufTokenKind::kControl &&
          chat_template.find(token) != std::string::npos) {
        named.push_back(token);
      }
    }
    config.Set("additional_special_tokens", std::move(named));
    config.Set("chat_template", chat_template);
  }
  config.Set("clean_up_tokenization_spaces", false);
  OCTAVO_ASSIGN_OR_RETURN(const std::string architecture,
                          source.metadata.RequireString("general.architecture"));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t context,
                          RequireSize(source.metadata, architecture + ".context_length"));
  config.Set("model_max_length", context);
  // The general class: transformers rebuilds the pipeline of named ones from their vocabulary.
  config.Set("tokenizer_class", "PreTrainedTokenizerFast");
  return config;
}

// `pre_tokenizer` is null for SentencePiece.
Result<Source> ReadSource(const Value& metadata, const PreTokenizer* pre_tokenizer) {
  OCTAVO_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, GgufVocabulary::Read(metadata));
  Source source{.metadata = metadata, .vocabulary = std::move(vocabulary)};
  const auto token = [&](std::string_view key) {
    return source.vocabulary.TokenOf(metadata, "tokenizer.ggml." + std::string(key));
  };
  OCTAVO_ASSIGN_OR_RETURN(source.bos, token("bos_token_id"));
  OCTAVO_ASSIGN_OR_RETURN(source.eos, token("eos_token_id"));
  OCTAVO_ASSIGN_OR_RETURN(source.pad, token("padding_token_id"));
  OCTAVO_ASSIGN_OR_RETURN(source.unk, token("unknown_token_id"));
  // llama.cpp's defaults differ by kind.
  const bool sentencepiece = pre_tokenizer == nullptr;
  OCTAVO_ASSIGN_OR_RETURN(
      source.add_bos,
      metadata.GetBool("tokenizer.ggml.add_bos_token", sentencepiece || pre_tokenizer->add_bos));
  OCTAVO_ASSIGN_OR_RETURN(source.add_eos, metadata.GetBool("tokenizer.ggml.add_eos_token", false));
  OCTAVO_ASSIGN_OR_RETURN(source.add_space_prefix,
                          metadata.GetBool("tokenizer.ggml.add_space_prefix", sentencepiece));
  return source;
}

}  // namespace

Result<ImportedTokenizer> MakeTokenizer(const Value& metadata, int64_t vocab_size) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string kind, metadata.RequireString("tokenizer.ggml.model"));
  if (kind != "gpt2" && kind != "llama") {
    return Unsupported("tokenizer.ggml.model is " + kind + ", only gpt2 and llama are imported");
  }
  const PreTokenizer* pre_tokenizer = nullptr;
  if (kind == "gpt2") {
    OCTAVO_ASSIGN_OR_RETURN(pre_tokenizer, FindPreTokenizer(metadata));
  }
  OCTAVO_ASSIGN_OR_RETURN(const Source source, ReadSource(metadata, pre_tokenizer));
  const auto num_tokens = static_cast<int64_t>(source.vocabulary.tokens().size());
  if (num_tokens > vocab_size) {
    return CorruptFile(
        fmt::format("{} tokens, but the embedding has {} rows", num_tokens, vocab_size));
  }
  OCTAVO_ASSIGN_OR_RETURN(Pipeline parts, pre_tokenizer == nullptr
                                              ? SentencePieceBpe(source)
                                              : ByteLevelBpe(source, *pre_tokenizer));
  OCTAVO_ASSIGN_OR_RETURN(Value post_processor, PostProcessor(source));
  ImportedTokenizer tokenizer;
  OCTAVO_ASSIGN_OR_RETURN(tokenizer.config, TokenizerConfig(source));
  tokenizer.pipeline = Object{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", AddedTokens(source.vocabulary)},
      {"normalizer", std::move(parts.normalizer)},
      {"pre_tokenizer", std::move(parts.pre_tokenizer)},
      {"post_processor", std::move(post_processor)},
      {"decoder", std::move(parts.decoder)},
      {"model", std::move(parts.model)},
  };
  return tokenizer;
}

}  // namespace octavo
