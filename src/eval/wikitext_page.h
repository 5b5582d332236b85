// The pages of WikiText: cut from the release's file, counted, and made ordinary text again, by
// lm-evaluation-harness's rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// One page for each level-1 heading (" = Title = "); what stands before the first one is a page,
// too, unless it is blank.
std::vector<std::string> SplitWikitextPages(std::string_view text);

// Undoes the tokenization of the release: "@-@", blanks before punctuation and inside brackets.
std::string DetokenizeWikitext(std::string_view page);

// Pieces of a split at white space: blanks at the start and at the end count one more each.
int64_t CountWords(std::string_view page);

}  // namespace octavo
