#include "base/suggest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace octavo {

namespace {

// Levenshtein's distance, ignoring case.
size_t EditDistance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replace = diagonal + (lower(a[i]) != lower(b[j]) ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string> candidates) {
  std::string nearest;
  // The least distance that is too far.
  size_t least = std::min(std::max<size_t>(2, name.size() / 3) + 1, name.size());
  for (const std::string& candidate : candidates) {
    // Half a name is a name cut short, however much is missing.
    if (name.size() >= 3 && candidate.starts_with(name)) return candidate;
    // The distance is at least the difference in length; `name` may be very long.
    const size_t difference =
        std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (difference >= least) continue;
    if (size_t distance = EditDistance(name, candidate); distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : " (did you mean \"" + nearest + "\"?)";
}

}  // namespace octavo
