#include "convert/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using Array = Value::Array;
using Object = Value::Object;

// Metadata of a byte-level tokenizer of six tokens.
Value ByteLevelMetadata() {
  return Object{
      {"general.architecture", "llama"},
      {"llama.context_length", 128},
      {"tokenizer.ggml.model", "gpt2"},
      {"tokenizer.ggml.pre", "smollm"},
      {"tokenizer.ggml.tokens", Array{"<|end|>", "<|start|>", "Ġ", "t", "h", "Ġt", "<tool>"}},
      {"tokenizer.ggml.token_type", Array{3, 3, 1, 1, 1, 1, 4}},
      {"tokenizer.ggml.merges", Array{"Ġ t"}},
      {"tokenizer.ggml.bos_token_id", 1},
      {"tokenizer.ggml.eos_token_id", 0},
      {"tokenizer.ggml.add_bos_token", false},
      {"tokenizer.chat_template", "{{ '<|start|>' }}"},
  };
}

// Metadata of a SentencePiece tokenizer: ▁ab can be made of ▁ + ab and of ▁a + b.
Value SentencePieceMetadata() {
  return Object{
      {"general.architecture", "llama"},
      {"llama.context_length", 128},
      {"tokenizer.ggml.model", "llama"},
      {"tokenizer.ggml.tokens",
       Array{"<unk>", "<s>", "</s>", "<0x0A>", "▁", "a", "b", "ab", "▁a", "▁ab", "▁▁"}},
      {"tokenizer.ggml.token_type", Array{2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 4}},
      {"tokenizer.ggml.scores", Array{0.0, 0.0, 0.0, 0.0, -5.0, -6.0, -7.0, -1.0, -0.5, -1.0, 0.0}},
      {"tokenizer.ggml.bos_token_id", 1},
      {"tokenizer.ggml.eos_token_id", 2},
      {"tokenizer.ggml.unknown_token_id", 0},
  };
}

Value Parse(std::string_view json) {
  return ParseJson(json, "expected").value();
}

TEST(GgufTokenizerTest, ByteLevelPipeline) {
  Result<ImportedTokenizer> tokenizer = MakeTokenizer(ByteLevelMetadata(), 7);
  ASSERT_OK(tokenizer);
  EXPECT_EQ(tokenizer->pipeline, Parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [
      {"id": 0, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 1, "content": "<|start|>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 6, "content": "<tool>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "ignore_merges": false,
              "vocab": {"<|end|>": 0, "<|start|>": 1, "Ġ": 2, "t": 3, "h": 4, "Ġt": 5, "<tool>": 6},
              "merges": [["Ġ", "t"]]}})"));
  EXPECT_EQ(tokenizer->config, Parse(R"({
    "add_bos_token": false, "add_prefix_space": false,
    "bos_token": "<|start|>", "eos_token": "<|end|>",
    "additional_special_tokens": ["<|start|>"], "chat_template": "{{ '<|start|>' }}",
    "clean_up_tokenization_spaces": false, "model_max_length": 128,
    "tokenizer_class": "PreTrainedTokenizerFast"})"));
}

TEST(GgufTokenizerTest, Gpt2Splits) {
  Value metadata = ByteLevelMetadata();
  for (const char* name : {"gpt2", "gpt-2"}) {
    metadata.Set("tokenizer.ggml.pre", name);
    Result<ImportedTokenizer> tokenizer = MakeTokenizer(metadata, 7);
    ASSERT_OK(tokenizer);
    EXPECT_EQ(*tokenizer->pipeline.Find("pre_tokenizer"),
              Parse(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                        "use_regex": true})"));
  }
}

TEST(GgufTokenizerTest, FamiliesSplitByRegularExpressions) {
  const struct {
    const char* name;
    const char* contained;
    bool ignore_merges, nfc;
  } cases[] = {{"llama-bpe", R"(|\p{N}{1,3}|)", true, false},
               {"llama3", R"(|\p{N}{1,3}|)", true, false},
               {"qwen2", R"(|\p{N}|)", false, true},
               {"tekken", R"(\p{Lu}\p{Lt})", true, false}};
  Value metadata = ByteLevelMetadata();
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.name);
    metadata.Set("tokenizer.ggml.pre", expected.name);
    Result<ImportedTokenizer> tokenizer = MakeTokenizer(metadata, 7);
    ASSERT_OK(tokenizer);
    const Value& pipeline = tokenizer->pipeline;
    const Array& parts = pipeline.Find("pre_tokenizer")->Find("pretokenizers")->as_array();
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_NE(parts[0].Find("pattern")->Find("Regex")->as_string().find(expected.contained),
              std::string::npos);
    EXPECT_EQ(*parts[1].Find("use_regex"), Value(false));
    EXPECT_EQ(*pipeline.Find("model")->Find("ignore_merges"), Value(expected.ignore_merges));
    EXPECT_EQ(!pipeline.Find("normalizer")->is_null(), expected.nfc);
  }
}

TEST(GgufTokenizerTest, Llama3HasABosWhereTheFileDoesNotSay) {
  Value metadata = ByteLevelMetadata();
  metadata.Erase("tokenizer.ggml.add_bos_token");
  for (const auto& [name, added] :
       {std::pair("llama-bpe", true), {"tekken", true}, {"qwen2", false}, {"smollm", false}}) {
    metadata.Set("tokenizer.ggml.pre", name);
    Result<ImportedTokenizer> tokenizer = MakeTokenizer(metadata, 7);
    ASSERT_OK(tokenizer);
    EXPECT_EQ(*tokenizer->config.Find("add_bos_token"), Value(added)) << name;
  }
}

TEST(GgufTokenizerTest, BosAndEosAroundEachText) {
  Value metadata = ByteLevelMetadata();
  metadata.Set("tokenizer.ggml.add_bos_token", true);
  metadata.Set("tokenizer.ggml.add_eos_token", true);
  Result<ImportedTokenizer> tokenizer = MakeTokenizer(metadata, 7);
  ASSERT_OK(tokenizer);
  EXPECT_EQ(*tokenizer->pipeline.Find("post_processor"), Parse(R"({
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|start|>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<|end|>", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "<|start|>", "type_id": 0}},
             {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "<|end|>", "type_id": 0}},
             {"SpecialToken": {"id": "<|start|>", "type_id": 1}},
             {"Sequence": {"id": "B", "type_id": 1}},
             {"SpecialToken": {"id": "<|end|>", "type_id": 1}}],
    "special_tokens": {"<|start|>": {"id": "<|start|>", "ids": [1], "tokens": ["<|start|>"]},
                       "<|end|>": {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}}})"));
}

TEST(GgufTokenizerTest, SentencePieceMergesComeFromScores) {
  Result<ImportedTokenizer> tokenizer = MakeTokenizer(SentencePieceMetadata(), 100);
  ASSERT_OK(tokenizer);
  const Value& model = *tokenizer->pipeline.Find("model");
  // Best score first (▁a), then tokens by id (ab, ▁ab), then splits by the id of their halves.
  EXPECT_EQ(*model.Find("merges"), Parse(R"([["▁", "a"], ["a", "b"], ["▁", "ab"], ["▁a", "b"]])"));
  EXPECT_EQ(*model.Find("unk_token"), Value("<unk>"));
  EXPECT_EQ(*model.Find("byte_fallback"), Value(true));
  EXPECT_EQ(*model.Find("fuse_unk"), Value(true));
  EXPECT_EQ(*tokenizer->pipeline.Find("normalizer"), Parse(R"({"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})"));
  EXPECT_EQ(*tokenizer->pipeline.Find("decoder"), Parse(R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})"));
  EXPECT_FALSE(tokenizer->pipeline.Find("post_processor")->is_null());  // BOS is the default
  EXPECT_EQ(*tokenizer->config.Find("add_bos_token"), Value(true));
  EXPECT_EQ(tokenizer->pipeline.Find("added_tokens")->as_array().size(), 4U);
}

TEST(GgufTokenizerTest, SentencePieceWithoutSpacePrefix) {
  Value metadata = SentencePieceMetadata();
  metadata.Set("tokenizer.ggml.add_space_prefix", false);
  Result<ImportedTokenizer> tokenizer = MakeTokenizer(metadata, 100);
  ASSERT_OK(tokenizer);
  EXPECT_EQ(tokenizer->pipeline.Find("normalizer")->Find("normalizers")->as_array().size(), 1U);
  EXPECT_EQ(tokenizer->pipeline.Find("decoder")->Find("decoders")->as_array().size(), 3U);
}

struct Refused {
  const char* key;
  Value value;  // null removes the key
  const char* message;
};

void ExpectRefused(const Value& valid, const std::vector<Refused>& cases) {
  for (const Refused& refused : cases) {
    Value metadata = valid;
    metadata.Set(refused.key, refused.value);
    if (refused.value.is_null()) metadata.Erase(refused.key);
    const Result<ImportedTokenizer> tokenizer = MakeTokenizer(metadata, 100);
    ASSERT_FALSE(tokenizer.ok()) << refused.key << " " << WriteJson(refused.value);
    EXPECT_NE(tokenizer.status().message().find(refused.message), std::string::npos)
        << tokenizer.status().message();
  }
}

TEST(GgufTokenizerTest, BadByteLevelMetadataIsRefused) {
  const std::string tokens = "tokenizer.ggml.tokens";
  ExpectRefused(
      ByteLevelMetadata(),
      {{"tokenizer.ggml.model", "bert", "tokenizer.ggml.model is bert"},
       {"tokenizer.ggml.model", nullptr, "tokenizer.ggml.model"},
       {"tokenizer.ggml.pre", "viking", "tokenizer.ggml.pre is viking"},
       {"tokenizer.ggml.pre", nullptr, "tokenizer.ggml.pre"},
       {"tokenizer.ggml.tokens", nullptr, "tokenizer.ggml.tokens is missing"},
       {"tokenizer.ggml.tokens", 3, "tokenizer.ggml.tokens is integer"},
       {"tokenizer.ggml.tokens", Array{"a"}, "1 tokens, but 7"},
       {"tokenizer.ggml.tokens", Array{"a", "b", "c", "a", "d", "e", "f"},
        "0 and 3 are both \"a\""},
       {"tokenizer.ggml.tokens", Array{"a", "b", "c", 4, "d", "e", "f"}, "token 3 is no UTF-8"},
       {"tokenizer.ggml.token_type", nullptr, "tokenizer.ggml.token_type is missing"},
       {"tokenizer.ggml.token_type", Array{3, 3, 1, 1, 1, 1, 9}, "token 6 is of type 9"},
       {"tokenizer.ggml.merges", nullptr, "tokenizer.ggml.merges is missing"},
       {"tokenizer.ggml.merges", Array{"Ġt"}, "merge 0"},
       {"tokenizer.ggml.merges", Array{""}, "merge 0"},
       {"tokenizer.ggml.merges", Array{7}, "merge 0"},
       {"tokenizer.ggml.merges", Array{"Ġ t", "t h"}, "merge 1"},
       {"tokenizer.ggml.bos_token_id", 7, "bos_token_id is 7"},
       {"tokenizer.ggml.eos_token_id", -1, "eos_token_id is -1"},
       {"tokenizer.ggml.add_bos_token", 1, "add_bos_token"},
       {"llama.context_length", nullptr, "llama.context_length"}});
  EXPECT_NE(MakeTokenizer(ByteLevelMetadata(), 6).status().message().find("6 rows"),
            std::string::npos);
  Value metadata = ByteLevelMetadata();
  metadata.Set("tokenizer.ggml.add_bos_token", true);
  metadata.Erase("tokenizer.ggml.bos_token_id");
  EXPECT_FALSE(MakeTokenizer(metadata, 7).ok());
}

TEST(GgufTokenizerTest, TokensMustBeUtf8) {
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC3", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE4\xB8", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "a\xFF"}) {
    Value metadata = ByteLevelMetadata();
    metadata.Find("tokenizer.ggml.tokens")->as_array()[4] = bad;
    EXPECT_FALSE(MakeTokenizer(metadata, 7).ok()) << bad;
  }
  for (const char* good : {"\x7F", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    Value metadata = ByteLevelMetadata();
    metadata.Find("tokenizer.ggml.tokens")->as_array()[4] = good;
    EXPECT_TRUE(MakeTokenizer(metadata, 7).ok()) << good;
  }
}

TEST(GgufTokenizerTest, BadSentencePieceMetadataIsRefused) {
  Array long_tokens = SentencePieceMetadata().Find("tokenizer.ggml.tokens")->as_array();
  long_tokens[9] = std::string(100'000, 'a');
  Array text_score = SentencePieceMetadata().Find("tokenizer.ggml.scores")->as_array();
  text_score[5] = "high";
  ExpectRefused(SentencePieceMetadata(),
                {{"tokenizer.ggml.scores", nullptr, "tokenizer.ggml.scores is missing"},
                 {"tokenizer.ggml.scores", Array{1.0}, "11 tokens, but 1"},
                 {"tokenizer.ggml.scores", text_score, "score of token 5"},
                 {"tokenizer.ggml.tokens", long_tokens, "token 9 has 100000 bytes"}});
}

}  // namespace
}  // namespace octavo
