#include "compress/bit_table.h"

#include <fmt/format.h>

#include "base/json.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

Result<const Value::Array*> ArrayOf(const StrictObject& object, std::string_view key, size_t size) {
  const Value* array = object.Find(key);
  if (array == nullptr || !array->is_array() || (size > 0 && array->as_array().size() != size)) {
    return CorruptFile(fmt::format("{} is not a list{}", object.Path(key),
                                   size > 0 ? fmt::format(" of {}", size) : ""));
  }
  return &array->as_array();
}

Result<BitTable::Unit> ParseUnit(const Value& json, const std::string& where, size_t candidates) {
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object,
                          StrictObject::Make(json, where, {"layers", "weights", "bits", "kl"}));
  BitTable::Unit unit;
  OCTAVO_ASSIGN_OR_RETURN(unit.layers, object.Strings("layers", {}));
  OCTAVO_ASSIGN_OR_RETURN(unit.weights, object.Int("weights", 0));
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* bits, ArrayOf(object, "bits", candidates));
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* kl, ArrayOf(object, "kl", candidates));
  if (unit.layers.empty() || unit.weights < 1)
    return CorruptFile(where + ": has no layers or no weights");
  for (size_t c = 0; c < candidates; ++c) {
    if (!(*bits)[c].is_int() || !(*kl)[c].is_number())
      return CorruptFile(where + ": bits are integers and kl numbers, one for each candidate");
    unit.options.push_back({.bits = (*bits)[c].as_int(), .kl = (*kl)[c].as_double()});
  }
  return unit;
}

}  // namespace

int64_t BitTable::weights() const {
  int64_t sum = 0;
  for (const Unit& unit : units) sum += unit.weights;
  return sum;
}

std::vector<std::vector<BitOption>> BitTable::Options() const {
  std::vector<std::vector<BitOption>> options;
  options.reserve(units.size());
  for (const Unit& unit : units) options.push_back(unit.options);
  return options;
}

Value ToJson(const BitTable& table) {
  Value::Array units;
  units.reserve(table.units.size());
  for (const BitTable::Unit& unit : table.units) {
    Value::Array bits, kl;
    for (const BitOption& option : unit.options) {
      bits.emplace_back(option.bits);
      kl.emplace_back(option.kl);
    }
    units.push_back(Value::Object{{"layers", Value::Array(unit.layers.begin(), unit.layers.end())},
                                  {"weights", unit.weights},
                                  {"bits", std::move(bits)},
                                  {"kl", std::move(kl)}});
  }
  return Value::Object{
      {"candidates", Value::Array(table.candidates.begin(), table.candidates.end())},
      {"group_size", table.group_size},
      {"method", table.method},
      {"units", std::move(units)}};
}

Result<BitTable> ParseBitTable(std::string_view text, std::string_view what) {
  OCTAVO_ASSIGN_OR_RETURN(const Value json, ParseJson(text, what));
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject object,
      StrictObject::Make(json, what, {"candidates", "group_size", "method", "units"}));
  BitTable table;
  OCTAVO_ASSIGN_OR_RETURN(table.candidates, object.Strings("candidates", {}));
  OCTAVO_ASSIGN_OR_RETURN(table.group_size, object.Int("group_size", 0));
  OCTAVO_ASSIGN_OR_RETURN(table.method, object.String("method", ""));
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* units, ArrayOf(object, "units", 0));
  if (table.candidates.empty() || units->empty())
    return CorruptFile(fmt::format("{}: no candidates or no units", what));
  for (size_t i = 0; i < units->size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(
        BitTable::Unit unit,
        ParseUnit((*units)[i], fmt::format("{}: units[{}]", what, i), table.candidates.size()));
    table.units.push_back(std::move(unit));
  }
  return table;
}

}  // namespace octavo
