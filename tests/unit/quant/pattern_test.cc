#include "quant/pattern.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr ModuleName kQuery = {"model.layers.0.self_attn.q_proj", "Linear"};

MatchKind Match(std::string_view pattern, const ModuleName& module = kQuery) {
  return ModulePattern::Make(pattern)->Match(module).value();
}

TEST(Pattern, RegexIsAnchoredAtTheStartOnly) {
  EXPECT_EQ(Match("re:.*q_proj"), MatchKind::kRegex);
  EXPECT_EQ(Match("re:q_proj"), MatchKind::kNone);
  EXPECT_EQ(Match("re:model"), MatchKind::kRegex);
  EXPECT_EQ(Match("re:.*self_attn$"), MatchKind::kNone);
  EXPECT_EQ(Match("re:"), MatchKind::kRegex);  // as Python's re.match("")
}

TEST(Pattern, KnowsPerlSyntax) {
  EXPECT_EQ(Match(R"(re:(?!.*lm_head)model\.layers\.\d+\.)"), MatchKind::kRegex);
  EXPECT_EQ(Match(R"(re:(?P<block>model)\.layers\.(?:0|1)\.)"), MatchKind::kRegex);
}

TEST(Pattern, NamesAndClassesAreExact) {
  EXPECT_EQ(Match("model.layers.0.self_attn.q_proj"), MatchKind::kName);
  EXPECT_EQ(Match("model.layers.0"), MatchKind::kNone);
  EXPECT_EQ(Match("model.layers.*"), MatchKind::kNone);
  EXPECT_EQ(Match("Linear"), MatchKind::kClass);
  EXPECT_EQ(Match("LinearBase"), MatchKind::kClass);
  EXPECT_EQ(Match("Module"), MatchKind::kClass);
  EXPECT_EQ(Match("linear"), MatchKind::kNone);
  EXPECT_EQ(Match("LinearBase", {"model.embed_tokens", "Embedding"}), MatchKind::kNone);
}

TEST(Pattern, ABrokenRegexIsNamed) {
  const auto result = ModulePattern::Make("re:.*(q_proj");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("\"re:.*(q_proj\" does not compile"), std::string::npos)
      << result.status().message();
}

TEST(Pattern, HostileRegexesEnd) {
  const std::string name = std::string(60, 'a') + "!";
  const ModuleName module = {name, "Linear"};
  const auto exponential = ModulePattern::Make("re:(a|aa)+$")->Match(module);
  ASSERT_FALSE(exponential.ok());
  EXPECT_NE(exponential.status().message().find("fails on"), std::string::npos);
  EXPECT_FALSE(ModulePattern::Make("re:" + std::string(1000, '(')).ok());
  EXPECT_FALSE(ModulePattern::Make("re:" + std::string(100'000, 'a')).ok());
  EXPECT_FALSE(ModulePattern::Make("re:\xff").ok());
  EXPECT_FALSE(ModulePattern::Make("re:.*q")->Match({"\xff\xfe", "Linear"}).ok());
}

}  // namespace
}  // namespace octavo
