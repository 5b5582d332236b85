// What a wrong or hostile tokenizer.json gets: a message that says where, and no more memory than
// the file is worth.
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "base/usage.h"
#include "support/temporary_folder.h"
#include "text/tokenizer.h"
#include "unit/text/tokenizer_vectors.h"

namespace octavo {
namespace {

// A small tokenizer into which a case puts something wrong.
Value SmallTokenizer() {
  return ParseJson(R"({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
  })",
                   "small")
      .value();
}

struct Case {
  const char* part;  // member of tokenizer.json, or "model.x"
  std::string value;
  const char* message;  // how the message begins
  StatusCode code = StatusCode::kCorruptFile;
};

void ExpectRefused(const Case& item) {
  SCOPED_TRACE(std::string(item.part) + " = " + item.value.substr(0, 200));
  Value json = SmallTokenizer();
  const std::string part = item.part;
  Result<Value> value = ParseJson(item.value, "case");
  ASSERT_TRUE(value.ok()) << value.status().message();
  if (part.starts_with("model.")) {
    json.Find("model")->Set(part.substr(6), *value);
  } else {
    json.Set(part, *value);
  }
  const Result<Tokenizer> tokenizer = Tokenizer::FromJson(json, "F");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), item.code);
  EXPECT_EQ(tokenizer.status().message().substr(0, std::string_view(item.message).size()),
            item.message);
}

TEST(TokenizerLoad, SmallTokenizerWorks) {
  const Result<Tokenizer> tokenizer = Tokenizer::FromJson(SmallTokenizer(), "F");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->Encode("ab<s>ba", true).value(), (std::vector<TokenId>{2, 3, 1, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 4);
  EXPECT_EQ(tokenizer->TokenToId("<s>"), 3);
  EXPECT_EQ(tokenizer->IdToToken(2), "ab");
  EXPECT_EQ(tokenizer->IdToToken(4), std::nullopt);
  EXPECT_EQ(tokenizer->IdToToken(-1), std::nullopt);
  EXPECT_TRUE(tokenizer->IsSpecial(3));
  EXPECT_FALSE(tokenizer->IsSpecial(2));
  EXPECT_FALSE(tokenizer->IsSpecial(-1));
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{2, -5, 99, 3, 0}, true), "ab a");
}

TEST(TokenizerLoad, WrongModels) {
  const Case cases[] = {
      {"model", "null", "F: there is no \"model\""},
      {"model", "[]", "F: model: expected an object with \"type\", found array"},
      {"model", "{}", "F: model: ", StatusCode::kInvalidArgument},
      {"model", R"({"type": "Unigram"})", "F: model \"Unigram\" is not supported yet; known: BPE",
       StatusCode::kUnsupported},
      {"model.type", "7", "F: model: ", StatusCode::kInvalidArgument},
      {"model.vocab", "null", "F: model: BPE: vocab: expected an object of tokens and ids"},
      {"model.vocab", "[\"a\"]", "F: model: BPE: vocab: expected an object of tokens and ids"},
      {"model.vocab", R"({"a": -1})", "F: model: BPE: vocab: token \"a\": id -1 is not"},
      {"model.vocab", R"({"a": 2147483648})", "F: model: BPE: vocab: token \"a\": id 2147483648"},
      {"model.vocab", R"({"a": 2147483647})", "F: model: BPE: vocab: token \"a\": id 2147483647"},
      {"model.vocab", R"({"a": 1e300})", "F: model: BPE: vocab: token \"a\": id 1e+300 is not"},
      {"model.vocab", R"({"a": "0"})", "F: model: BPE: vocab: token \"a\": id \"0\" is not"},
      {"model.vocab", R"({"a": 0, "b": 0})",
       "F: model: BPE: vocab: tokens \"a\" and \"b\" have the same id 0"},
      {"model.merges", "null", "F: model: BPE: merges: expected an array, found null"},
      {"model.merges", R"(["a b", "ab"])", "F: model: BPE: merges[1]: expected"},
      {"model.merges", R"(["a b c"])", "F: model: BPE: merges[0]: expected"},
      {"model.merges", R"([["a"]])", "F: model: BPE: merges[0]: expected"},
      {"model.merges", R"([["a", 1]])", "F: model: BPE: merges[0]: expected"},
      {"model.merges", R"([17])", "F: model: BPE: merges[0]: expected"},
      {"model.merges", R"(["a c"])",
       "F: model: BPE: merges[0]: token \"c\" is not in the vocabulary"},
      {"model.merges", R"([["a", "a"]])",
       "F: model: BPE: merges[0]: token \"aa\" is not in the vocabulary"},
      {"model.unk_token", "\"u\"", "F: model: BPE: unk_token: \"u\" is not in the vocabulary"},
      {"model.unk_token", "5", "F: model: BPE: ", StatusCode::kInvalidArgument},
      {"model.byte_fallback", "1", "F: model: BPE: ", StatusCode::kInvalidArgument},
      {"model.dropout", "0.5", "F: model: BPE: dropout: 0.5", StatusCode::kUnsupported},
  };
  for (const Case& item : cases) ExpectRefused(item);
}

TEST(TokenizerLoad, WrongAddedTokens) {
  const Case cases[] = {
      {"added_tokens", "{}", "F: added_tokens: expected an array, found object"},
      {"added_tokens", "[3]", "F: added_tokens: [0]: expected an object, found integer"},
      {"added_tokens", R"([{"content": "x"}])",
       "F: added_tokens: [0]: ", StatusCode::kInvalidArgument},
      {"added_tokens", R"([{"id": 3}])", "F: added_tokens: [0]: ", StatusCode::kInvalidArgument},
      {"added_tokens", R"([{"id": 3, "content": "x", "special": "yes"}])",
       "F: added_tokens: [0]: ", StatusCode::kInvalidArgument},
      {"added_tokens", R"([{"id": -1, "content": "x"}])",
       "F: added_tokens: [0]: id -1 is out of range"},
      {"added_tokens", R"([{"id": 2147483648, "content": "x"}])",
       "F: added_tokens: [0]: id 2147483648 is out of range"},
      {"added_tokens", R"([{"id": 2147483647, "content": "x"}])",
       "F: added_tokens: [0]: id 2147483647 is beyond"},
      {"added_tokens", R"([{"id": 3, "content": "x"}, {"id": 3, "content": "y"}])",
       "F: added_tokens: [1]: \"x\" and \"y\" have the same id 3"},
      {"added_tokens", R"([{"id": 3, "content": "x"}, {"id": 4, "content": "x"}])",
       "F: added_tokens: [1]: \"x\" is listed twice"},
      {"added_tokens", R"([{"id": 1, "content": "x"}])",
       "F: added_tokens: [0]: \"b\" and \"x\" have the same id 1"},
      {"added_tokens", R"([{"id": 7, "content": "a"}])",
       "F: added_tokens: [0]: \"a\" has id 7, but 0 in the model's vocabulary"},
  };
  for (const Case& item : cases) ExpectRefused(item);
}

TEST(TokenizerLoad, WrongComponents) {
  std::string nested = "null";
  for (int i = 0; i < 40; ++i) {
    const std::string inner = nested == "null" ? std::string() : nested;
    nested = R"({"type": "Sequence", "normalizers": [)" + inner + "]}";
  }
  const std::string many_groups = std::string(2000, '(') + std::string(2000, ')');
  const auto split = [](const std::string& pattern) {
    return R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": )" +
           JsonString(pattern) + "}}";
  };
  const Case cases[] = {
      {"normalizer", R"({"type": "Precompiled"})",
       "F: normalizer \"Precompiled\" is not supported yet; known: Lowercase, NFC",
       StatusCode::kUnsupported},
      {"normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "No"}]})",
       "F: normalizer: Sequence: normalizers[1]: normalizer \"No\" is not supported yet",
       StatusCode::kUnsupported},
      {"normalizer", "7", "F: normalizer: expected an object with \"type\", found integer"},
      {"normalizer", nested, "F: normalizer: Sequence: normalizers[0]: Sequence: normalizers[0]"},
      {"normalizer", R"({"type": "Prepend"})",
       "F: normalizer: Prepend: ", StatusCode::kInvalidArgument},
      {"normalizer", R"({"type": "Replace", "content": ""})",
       "F: normalizer: Replace: pattern: expected"},
      {"normalizer", R"({"type": "Replace", "pattern": {"String": 1}, "content": ""})",
       "F: normalizer: Replace: pattern: expected"},
      {"pre_tokenizer", split("a("),
       "F: pre_tokenizer: Split: pattern: the pattern \"a(\" does not"},
      {"pre_tokenizer", split("[a"),
       "F: pre_tokenizer: Split: pattern: the pattern \"[a\" does not"},
      {"pre_tokenizer", split("(?<=a*)b"), "F: pre_tokenizer: Split: pattern: the pattern"},
      {"pre_tokenizer", split("\\"), "F: pre_tokenizer: Split: pattern: the pattern"},
      {"pre_tokenizer", split("((a{1,60000}){1,60000}){1,60000}"),
       "F: pre_tokenizer: Split: pattern: the pattern"},
      {"pre_tokenizer", split(many_groups), "F: pre_tokenizer: Split: pattern: the pattern"},
      {"pre_tokenizer", split(std::string(70000, 'a')),
       "F: pre_tokenizer: Split: pattern: the pattern has 70000 bytes"},
      {"pre_tokenizer", split("[a&&b]"),
       "F: pre_tokenizer: Split: pattern: an intersection of sets at byte 2",
       StatusCode::kUnsupported},
      {"pre_tokenizer", split("[a[b]]"), "F: pre_tokenizer: Split: pattern: a set inside a set",
       StatusCode::kUnsupported},
      {"pre_tokenizer", R"({"type": "Split", "behavior": "Often", "pattern": {"String": "a"}})",
       "F: pre_tokenizer: Split: behavior: expected Removed"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})",
       "F: pre_tokenizer: Metaspace: replacement: expected one character"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "x"})",
       "F: pre_tokenizer: Metaspace: prepend_scheme: expected"},
      {"post_processor", R"({"type": "TemplateProcessing", "single": [], "pair": []})",
       "F: post_processor: TemplateProcessing: single: expected each of A once"},
      {"post_processor",
       R"({"type": "TemplateProcessing", "pair": [],
           "single": [{"SpecialToken": {"id": "x", "type_id": 0}}]})",
       "F: post_processor: TemplateProcessing: single[0]: SpecialToken: \"x\" is not in"},
      {"post_processor",
       R"({"type": "TemplateProcessing", "special_tokens": {"x": {"ids": [-1], "tokens": ["x"]}}})",
       "F: post_processor: TemplateProcessing: special_tokens.\"x\": ids[0]: expected a token id"},
      {"post_processor",
       R"({"type": "TemplateProcessing", "special_tokens": {"x": {"ids": [], "tokens": ["x"]}}})",
       "F: post_processor: TemplateProcessing: special_tokens.\"x\": 0 ids for 1 tokens"},
      {"decoder", R"({"type": "Strip", "content": " ", "start": -1, "stop": 0})",
       "F: decoder: Strip: expected one character"},
      {"decoder", R"({"type": "Sequence"})",
       "F: decoder: Sequence: decoders: expected an array, found nothing"},
  };
  for (const Case& item : cases) ExpectRefused(item);
}

TEST(TokenizerLoad, LyingSizesTakeNoMemory) {
  const int64_t before = PeakRssBytes();
  ExpectRefused({"model.vocab", R"({"a": 2000000000})", "F: model: BPE: vocab: token \"a\""});
  ExpectRefused({"added_tokens", R"([{"id": 2000000000, "content": "x"}])", "F: added_tokens"});
  EXPECT_LT(PeakRssBytes() - before, 64 << 20);
}

class TokenizerFile : public ::testing::Test {
 protected:
  Status LoadText(std::string_view text) {
    std::ofstream(folder_ / "tokenizer.json", std::ios::binary) << text;
    return Tokenizer::Load(folder_).status();
  }

  testing::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(TokenizerFile, MissingCutAndDeep) {
  EXPECT_EQ(Tokenizer::Load(folder_).status().code(), StatusCode::kNotFound);
  const std::string whole = WriteJson(SmallTokenizer());
  EXPECT_TRUE(LoadText(whole).ok());
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_EQ(LoadText(whole.substr(0, size)).code(), StatusCode::kCorruptFile) << size;
  }
  EXPECT_EQ(LoadText(std::string(100000, '[')).code(), StatusCode::kCorruptFile);
  EXPECT_NE(LoadText("{}").message().find("tokenizer.json: there is no \"model\""),
            std::string::npos);
}

TEST_F(TokenizerFile, TooLarge) {
  std::ofstream(folder_ / "tokenizer.json").close();
  std::filesystem::resize_file(folder_ / "tokenizer.json", (64 << 20) + 1);
  EXPECT_EQ(Tokenizer::Load(folder_).status().code(), StatusCode::kCorruptFile);
}

}  // namespace
}  // namespace octavo
