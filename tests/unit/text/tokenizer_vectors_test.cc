// Texts encoded and decoded as the tokenizers library does; made by goldens/text, see
// tests/data/tokenizers/README.md.
#include "unit/text/tokenizer_vectors.h"

#include <gtest/gtest.h>

#include "text/tokenizer.h"

namespace octavo {
namespace {

std::vector<TokenId> Ids(const Value& array) {
  std::vector<TokenId> ids;
  for (const Value& id : array.as_array()) ids.push_back(static_cast<TokenId>(id.as_int()));
  return ids;
}

void ExpectRow(const Tokenizer& tokenizer, const Value& row) {
  const std::string& text = row.Find("text")->as_string();
  const Encoding plain = tokenizer.EncodeWithOffsets(text, false).value();
  ExpectEncoding(plain, row);
  const Value* special = row.Find("special");
  const Encoding with_special = tokenizer.EncodeWithOffsets(text, true).value();
  ExpectEncoding(with_special, special != nullptr ? *special : row);
  EXPECT_EQ(tokenizer.Encode(text, true).value(), with_special.ids);
  EXPECT_EQ(tokenizer.Decode(with_special.ids, true), row.Find("decode_skip")->as_string());
  EXPECT_EQ(tokenizer.Decode(with_special.ids, false), row.Find("decode_keep")->as_string());
}

void ExpectPair(const Tokenizer& tokenizer, const Value& row) {
  const Encoding pair =
      tokenizer.EncodePair(row.Find("first")->as_string(), row.Find("second")->as_string(), true)
          .value();
  ExpectEncoding(pair, row);
  EXPECT_EQ(tokenizer.Decode(pair.ids, true), row.Find("decode_skip")->as_string());
}

void ExpectStream(const Tokenizer& tokenizer, const Value& row) {
  const std::vector<TokenId> ids = Ids(*row.Find("ids"));
  std::vector<std::string> emitted;
  StreamDecoder decoder(tokenizer, true);
  for (const TokenId id : ids) emitted.push_back(decoder.Push(id));
  emitted.push_back(decoder.Flush());
  const bool by_bytes = row.Find("batch_differs") != nullptr;
  std::vector<std::string> expected;
  for (const Value& text : row.Find(by_bytes ? "by_bytes" : "emit")->as_array()) {
    expected.push_back(text.as_string());
  }
  if (!by_bytes) expected.push_back(row.Find("flush")->as_string());
  EXPECT_EQ(expected, emitted);
  EXPECT_EQ(tokenizer.Decode(ids, true), row.Find("decode")->as_string());
}

struct Counts {
  size_t texts, pairs, streams;
};

void ExpectAllVectors(const std::filesystem::path& folder, Counts counts) {
  Result<Tokenizer> tokenizer = Tokenizer::Load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const struct {
    const char* file;
    size_t count;
    void (*expect)(const Tokenizer&, const Value&);
  } kinds[] = {{"vectors.jsonl", counts.texts, ExpectRow},
               {"pairs.jsonl", counts.pairs, ExpectPair},
               {"stream.jsonl", counts.streams, ExpectStream}};
  for (const auto& kind : kinds) {
    const std::vector<Value> rows = ReadRows(folder / kind.file);
    EXPECT_EQ(rows.size(), kind.count) << kind.file;
    for (const Value& row : rows) {
      SCOPED_TRACE(std::string(kind.file) + " " + row.Find("label")->as_string());
      kind.expect(*tokenizer, row);
    }
  }
}

TEST(TokenizerVectors, Smollm2) {
  ExpectAllVectors(TokenizerFolder("smollm2"), {351, 125, 29});
}

TEST(TokenizerVectors, Stories260k) {
  ExpectAllVectors(TokenizerFolder("stories260k"), {333, 119, 31});
}

TEST(TokenizerVectors, Minimind) {
  ExpectAllVectors(TokenizerFolder("minimind"), {351, 125, 31});
}

// Cut by tools/interop/cut_tokenizer.py.
TEST(TokenizerVectors, Qwen3) {
  ExpectAllVectors(TokenizerFolder("qwen3"), {88, 32, 31});
}

TEST(TokenizerVectors, Phi3) {
  ExpectAllVectors(TokenizerFolder("phi3"), {88, 32, 31});
}

TEST(TokenizerVectors, Gpt2) {
  ExpectAllVectors(TokenizerFolder("gpt2"), {74, 27, 31});
}

}  // namespace
}  // namespace octavo
