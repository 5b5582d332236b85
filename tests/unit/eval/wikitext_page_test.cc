// WikiText's pages: how the file is cut, what becomes of its tokenization, what counts as a word.
#include "eval/wikitext_page.h"

#include <gtest/gtest.h>

#include "io/sha256.h"
#include "unit/eval/eval_data.h"

namespace octavo {
namespace {

TEST(WikitextPage, DetokenizesAndCountsAsLmEvalDoes) {
  for (const Value& row : testing::ReadEvalRows("wikitext/detokenizer.jsonl")) {
    const std::string& page = row.Find("page")->as_string();
    EXPECT_EQ(DetokenizeWikitext(page), row.Find("detokenized")->as_string());
    EXPECT_EQ(CountWords(page), row.Find("words")->as_int()) << page;
  }
}

TEST(WikitextPage, AWholePage) {
  const Value row = testing::ReadEvalRows("wikitext/pages.jsonl").front();
  const std::string& page = row.Find("page")->as_string();
  EXPECT_EQ(Sha256OfText(DetokenizeWikitext(page)), row.Find("detokenized_sha256")->as_string());
  EXPECT_EQ(CountWords(page), row.Find("words")->as_int());
}

TEST(WikitextPage, TheFileIsCutAtLevelOneHeadings) {
  const std::string first = " = One = \n \n a \n = = Part = = \n b";
  const auto pages = SplitWikitextPages(" \n" + first + "\n = Two = \n c \n");
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages[0], first);
  EXPECT_EQ(pages[1], " = Two = \n c \n");
}

TEST(WikitextPage, BlanksAtTheEndsCount) {
  EXPECT_EQ(CountWords(""), 1);
  EXPECT_EQ(CountWords("a b"), 2);
  EXPECT_EQ(CountWords(" a\n\tb "), 4);
}

}  // namespace
}  // namespace octavo
