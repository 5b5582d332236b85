#include "compress/mixed_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace octavo {

namespace {

// "model.layers.3.mlp.down_proj" in three.
struct NameParts {
  std::string before;  // "model.layers."
  std::string block;   // "3"; empty: the name has no number
  std::string after;   // ".mlp.down_proj"
};

NameParts Split(const std::string& name) {
  constexpr std::string_view kDigits = "0123456789";
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const size_t end = name.find_first_not_of(kDigits, dot + 1);
    if (end != name.npos && end > dot + 1 && name[end] == '.')
      return {name.substr(0, dot + 1), name.substr(dot + 1, end - dot - 1), name.substr(end)};
  }
  return {.before = name, .block = "", .after = ""};
}

std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '.') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

int64_t WeightsOf(const BitTable& table, const BitChoice& choice, size_t candidate) {
  int64_t weights = 0;
  for (size_t u = 0; u < table.units.size(); ++u) {
    if (choice.options[u] == candidate) weights += table.units[u].weights;
  }
  return weights;
}

double BitsAWeight(int64_t bits, int64_t weights) {
  return static_cast<double>(bits) / static_cast<double>(weights);
}

}  // namespace

std::vector<std::string> TargetsOf(const std::vector<std::string>& layers) {
  std::vector<std::string> targets;
  // Of each projection, in the order of its first layer.
  std::vector<std::pair<NameParts, std::vector<std::string>>> projections;
  for (const std::string& layer : layers) {
    NameParts parts = Split(layer);
    if (parts.block.empty()) {
      targets.push_back(layer);
      continue;
    }
    const auto known =
        std::find_if(projections.begin(), projections.end(), [&](const auto& projection) {
          return projection.first.before == parts.before && projection.first.after == parts.after;
        });
    if (known != projections.end()) {
      known->second.push_back(parts.block);
    } else {
      projections.push_back({parts, {parts.block}});
    }
  }
  for (const auto& [parts, blocks] : projections) {
    targets.push_back(fmt::format("re:{}({}){}$", Escape(parts.before), fmt::join(blocks, "|"),
                                  Escape(parts.after)));
  }
  return targets;
}

std::vector<std::pair<std::string, QuantizationScheme>> MixedGroups(
    const BitTable& table, const BitChoice& choice,
    const std::vector<QuantizationScheme>& schemes) {
  size_t most = 0;
  for (size_t c = 1; c < table.candidates.size(); ++c) {
    if (WeightsOf(table, choice, c) > WeightsOf(table, choice, most)) most = c;
  }
  std::vector<std::pair<std::string, QuantizationScheme>> groups;
  for (size_t c = 0; c < table.candidates.size(); ++c) {
    std::vector<std::string> layers;
    for (size_t u = 0; u < table.units.size(); ++u) {
      const std::vector<std::string>& unit = table.units[u].layers;
      if (choice.options[u] == c) layers.insert(layers.end(), unit.begin(), unit.end());
    }
    if (layers.empty()) continue;
    QuantizationScheme scheme = schemes[c];
    scheme.targets = c == most ? std::vector<std::string>{"Linear"} : TargetsOf(layers);
    groups.emplace_back(table.candidates[c], std::move(scheme));
  }
  return groups;
}

std::string DescribeChoice(const BitTable& table, const BitChoice& choice) {
  const int64_t weights = table.weights();
  std::string text = fmt::format(
      "Chosen by measurement: {:.3f} bits a weight of the quantized layers, scales included;\n"
      "expected KL {:.4g} nats, the sum of what each unit of layers loses when it alone is "
      "quantized ({}).\n",
      BitsAWeight(choice.bits, weights), choice.kl, table.method);
  for (size_t c = 0; c < table.candidates.size(); ++c) {
    int64_t units = 0, bits = 0;
    double kl = 0;
    for (size_t u = 0; u < table.units.size(); ++u) {
      if (choice.options[u] != c) continue;
      ++units;
      bits += table.units[u].options[c].bits;
      kl += table.units[u].options[c].kl;
    }
    if (units == 0) continue;
    const int64_t of_these = WeightsOf(table, choice, c);
    text += fmt::format("{}: {} of {} units, {:.1f} % of the weights, {:.3f} bits, KL {:.4g}\n",
                        table.candidates[c], units, table.units.size(),
                        100 * BitsAWeight(of_these, weights), BitsAWeight(bits, of_these), kl);
  }
  return text;
}

}  // namespace octavo
