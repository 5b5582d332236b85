#include "eval/wikitext_page.h"

#include <algorithm>
#include <array>
#include <utility>

#include "eval/python_text.h"
#include "text/jinja/unicode.h"

namespace octavo {

namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

// Strips what stands between an opening and the next closing character.
void StripInside(std::string& text, char open, char close) {
  std::string out;
  size_t begin = 0;
  while (true) {
    const size_t left = text.find(open, begin);
    const size_t right = left == std::string::npos ? left : text.find(close, left + 1);
    if (right == std::string::npos) break;
    out.append(text, begin, left + 1 - begin);
    out +=
        jinja::Strip(std::string_view(text).substr(left + 1, right - left - 1), jinja::Side::kBoth);
    out += close;
    begin = right + 1;
  }
  text = out.append(text, begin);
}

// lm-eval means "' 5" to become "'5", but its pattern asks for slashes, and what it puts there is
// the pattern's own text.
void ReplaceSlashedNumbers(std::string& text) {
  for (char digit = '0'; digit <= '9'; ++digit) {
    const std::string slashed = std::string("/' ") + digit + "/";
    ReplaceAll(text, slashed, "/'[0-9]/");
  }
}

bool IsTitle(std::string_view line) {
  std::string text(line);
  ReplaceAll(text, "= = =", "===");
  ReplaceAll(text, "= =", "==");
  const std::string_view title = jinja::Strip(text, jinja::Side::kBoth);
  return title.starts_with("= ") && title.ends_with(" =");
}

}  // namespace

std::vector<std::string> SplitWikitextPages(std::string_view text) {
  std::vector<std::string> pages;
  const auto add = [&](std::string_view page) {
    if (!jinja::Strip(page, jinja::Side::kBoth).empty()) pages.emplace_back(page);
  };
  size_t page = 0;
  size_t line = 0;
  while (line <= text.size()) {
    const size_t end = std::min(text.find('\n', line), text.size());
    if (line > page && IsTitle(text.substr(line, end - line))) {
      add(text.substr(page, line - 1 - page));  // without the last line's end
      page = line;
    }
    line = end + 1;
  }
  add(text.substr(page));
  return pages;
}

std::string DetokenizeWikitext(std::string_view page) {
  std::string text(page);
  ReplaceAll(text, "s '", "s'");
  ReplaceSlashedNumbers(text);
  constexpr std::array kPunctuation = {
      Replacement{" @-@ ", "-"}, Replacement{" @,@ ", ","}, Replacement{" @.@ ", "."},
      Replacement{" : ", ": "},  Replacement{" ; ", "; "},  Replacement{" . ", ". "},
      Replacement{" ! ", "! "},  Replacement{" ? ", "? "},  Replacement{" , ", ", "}};
  for (const auto& [from, to] : kPunctuation) ReplaceAll(text, from, to);
  StripInside(text, '(', ')');
  StripInside(text, '[', ']');
  StripInside(text, '{', '}');
  StripInside(text, '"', '"');
  StripInside(text, '\'', '\'');
  constexpr std::array kRest = {Replacement{"= = = =", "===="}, Replacement{"= = =", "==="},
                                Replacement{"= =", "=="},       Replacement{" \u00B0 ", "\u00B0"},
                                Replacement{" \n", "\n"},       Replacement{"\n ", "\n"},
                                Replacement{" N ", " 1 "},      Replacement{" 's", "'s"}};
  for (const auto& [from, to] : kRest) ReplaceAll(text, from, to);
  return text;
}

int64_t CountWords(std::string_view page) {
  int64_t words = 1;
  bool in_space = false;
  for (size_t at = 0; at < page.size();) {
    const bool space = jinja::IsSpace(jinja::NextCodePoint(page, &at));
    if (space && !in_space) ++words;
    in_space = space;
  }
  return words;
}

}  // namespace octavo
