#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "eval/sensitivity.h"

namespace octavo {

namespace {

// "model.layers.3.self_attn.q_proj, k_proj, v_proj".
std::string UnitName(const LayerUnit& unit) {
  std::string name = unit.layers.front();
  for (size_t i = 1; i < unit.layers.size(); ++i)
    name += ", " + unit.layers[i].substr(unit.layers[i].rfind('.') + 1);
  return name;
}

}  // namespace

Value ToJson(std::span<const UnitSensitivity> sensitivities) {
  Value::Array json;
  for (const auto& [unit, kl] : sensitivities) {
    json.push_back(Value::Object{{"layers", Value::Array(unit.layers.begin(), unit.layers.end())},
                                 {"block", unit.block},
                                 {"kl", kl}});
  }
  return json;
}

std::string SensitivityTable(std::span<const UnitSensitivity> sensitivities, int64_t rows) {
  std::vector<size_t> order(sensitivities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sensitivities[a].kl > sensitivities[b].kl; });
  double sum = 0;
  for (const UnitSensitivity& sensitivity : sensitivities) sum += sensitivity.kl;
  if (rows > 0 && std::ssize(order) > rows) order.resize(static_cast<size_t>(rows));
  size_t width = 30;
  for (const size_t i : order) width = std::max(width, UnitName(sensitivities[i].unit).size());
  std::string text =
      fmt::format("{:<{}} {:>10} {:>8}\n", "quantized alone", width, "KL, nats", "of all");
  for (const size_t i : order) {
    text += fmt::format("{:<{}} {:>10.3e} {:>6.1f} %\n", UnitName(sensitivities[i].unit), width,
                        sensitivities[i].kl, sum > 0 ? 100 * sensitivities[i].kl / sum : 0);
  }
  return text + fmt::format("{:<{}} {:>10.3e}\n", "sum of all", width, sum);
}

}  // namespace octavo
