// Texts that are wrong, or made to take long.
#include <gtest/gtest.h>

#include "base/json.h"
#include "text/regex.h"
#include "text/tokenizer.h"
#include "unit/text/tokenizer_vectors.h"

namespace octavo {
namespace {

std::string Repeat(std::string_view unit, size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += unit;
  return text;
}

TEST(TokenizerText, InvalidUtf8IsRefusedWithItsPosition) {
  const Tokenizer tokenizer = Tokenizer::Load(TokenizerFolder("stories260k")).value();
  for (const std::string bad : {"\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE4\xBD",
                                "\xFF", "\xF8\x88\x80\x80\x80"}) {
    const auto ids = tokenizer.Encode("ab" + bad, true);
    ASSERT_FALSE(ids.ok()) << JsonString(bad, true);
    EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(ids.status().message().find("at position 2"), std::string::npos)
        << ids.status().message();
  }
}

// Quadratic work on any of these takes minutes.
TEST(TokenizerText, LongTextsTakeLinearTime) {
  constexpr size_t kBytes = 50'000;
  const std::string texts[] = {
      Repeat("a", kBytes),       Repeat(" ", kBytes),      Repeat(" ", kBytes) + "x",
      Repeat("\n", kBytes),      Repeat("7", kBytes),      Repeat("<s", kBytes),
      Repeat("<s>", kBytes),     Repeat(" \n", kBytes),    Repeat("<|im_start|", kBytes),
      Repeat("你", kBytes),      Repeat("\u0301", kBytes), Repeat("<|im_start|>", kBytes),
      Repeat("abcdefgh", kBytes)};
  for (const char* name : {"stories260k", "minimind"}) {
    const Tokenizer tokenizer = Tokenizer::Load(TokenizerFolder(name)).value();
    for (const std::string& text : texts) {
      SCOPED_TRACE(std::string(name) + " " + text.substr(0, 12));
      const std::vector<TokenId> ids = tokenizer.Encode(text, false).value();
      const std::string decoded = tokenizer.Decode(ids, false);
      EXPECT_EQ(decoded, text);
      StreamDecoder decoder(tokenizer, false);
      std::string streamed;
      for (const TokenId id : ids) streamed += decoder.Push(id);
      streamed += decoder.Flush();
      EXPECT_EQ(streamed, decoded);
    }
  }
}

// Added tokens that begin with each other: every search from every position would be quadratic.
TEST(TokenizerText, OverlappingAddedTokensTakeLinearTime) {
  const std::string long_token(20'000, 'a');
  Value json =
      ParseJson(R"({"model": {"type": "BPE", "vocab": {"a": 0, "x": 1}, "merges": []}})", "small")
          .value();
  Value first = Value::MakeObject();
  first.Set("id", 2);
  first.Set("content", long_token + "b");
  Value second = Value::MakeObject();
  second.Set("id", 3);
  second.Set("content", "aa");
  json.Set("added_tokens", Value::Array{first, second});
  const Tokenizer tokenizer = Tokenizer::FromJson(json, "small").value();
  const std::vector<TokenId> ids = tokenizer.Encode(Repeat("a", 400'001) + "x", true).value();
  EXPECT_EQ(ids.size(), 200'002u);
  EXPECT_EQ(tokenizer.Encode(long_token + "b", true).value(), std::vector<TokenId>{2});
}

TEST(TokenizerText, GrowthIsBounded) {
  Value json =
      ParseJson(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})", "small").value();
  Value replace = Value::MakeObject();
  replace.Set("type", "Replace");
  replace.Set("pattern", ParseJson(R"({"String": "a"})", "pattern").value());
  replace.Set("content", std::string(100'000, 'a'));
  json.Set("normalizer", replace);
  const Tokenizer tokenizer = Tokenizer::FromJson(json, "small").value();
  EXPECT_EQ(tokenizer.Encode("aaa", true).value().size(), 300'000u);
  const auto refused = tokenizer.Encode(std::string(100'000, 'a'), true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
}

TEST(TokenizerRegex, ExplosionIsRefused) {
  const Regex regex = Regex::Compile("(?:a+)+$").value();
  Regex::Searcher searcher(regex);
  std::vector<ByteRange> matches;
  std::string text(40, 'a');
  text += '!';
  const Status status = searcher.FindAll(text, matches);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("cannot be matched"), std::string::npos) << status.message();
}

TEST(TokenizerRegex, LongBacktrackingFindsItsWay) {
  const Regex regex = Regex::Compile("(?:a|b)+c|.").value();
  Regex::Searcher searcher(regex);
  std::vector<ByteRange> matches;
  std::string text(200'000, 'a');
  text += 'c';
  ASSERT_TRUE(searcher.FindAll(text, matches).ok());
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].end, text.size());
}

std::vector<std::string> FindAll(std::string_view pattern, std::string_view text) {
  const Regex regex = Regex::Compile(pattern).value();
  Regex::Searcher searcher(regex);
  std::vector<ByteRange> matches;
  EXPECT_TRUE(searcher.FindAll(text, matches).ok());
  std::vector<std::string> found;
  for (const ByteRange& match : matches) {
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  }
  return found;
}

// Where Oniguruma and PCRE2 read the same pattern differently, Oniguruma is right.
TEST(TokenizerRegex, ReadsPatternsAsOniguruma) {
  using Found = std::vector<std::string>;
  EXPECT_EQ(FindAll(R"(\s+)", "a\u0085\u00A0b\u180Ec\u3000"), (Found{"\u0085\u00A0", "\u3000"}));
  EXPECT_EQ(FindAll(R"([^\s]+)", "a\u00A0b\u180Ec"), (Found{"a", "b\u180Ec"}));
  EXPECT_EQ(FindAll(R"([\S])", "a\u2028b"), (Found{"a", "b"}));
  EXPECT_EQ(FindAll(R"(\w+)", "a_1½ e\u0301!"), (Found{"a_1½", "e\u0301"}));
  EXPECT_EQ(FindAll(R"(\h+)", "xyz09afAF "), (Found{"09afAF"}));
  EXPECT_EQ(FindAll(R"(\bb\b)", "b ab b\u0301 b"), (Found{"b", "b"}));
  EXPECT_EQ(FindAll("a{1,2}+", "aaaaa"), (Found{"aaaaa"}));  // a quantifier of a quantifier
  EXPECT_EQ(FindAll("a{2}?", "aaa"), (Found{"aa", ""}));     // two or none, not lazy
  EXPECT_EQ(FindAll("(ab){1,2}+c", "ababababc"), (Found{"ababababc"}));
  EXPECT_EQ(FindAll("a{,2}b", "aaab"), (Found{"aab"}));
  EXPECT_EQ(FindAll("a{x}", "a{x}"), (Found{"a{x}"}));
  EXPECT_EQ(FindAll("^b$", "a\nb\nc"), (Found{"b"}));
  EXPECT_EQ(FindAll("(?m:a.b)", "a\nb"), (Found{"a\nb"}));
  EXPECT_EQ(FindAll("a.b", "a\nb a\rb"), (Found{"a\rb"}));
  EXPECT_EQ(FindAll(R"((?i:'s|'T)|\p{Lu})", "'S 't X"), (Found{"'S", "'t", "X"}));
  EXPECT_EQ(FindAll("", "ab"), (Found{"", "", ""}));
  EXPECT_EQ(FindAll("b*", "abbc"), (Found{"", "bb", ""}));
}

}  // namespace
}  // namespace octavo
