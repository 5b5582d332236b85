#include "quant/observers/observer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"

namespace octavo {

#define OCTAVO_OBSERVER(record) extern const WeightObserver record;
#include "quant/observers/observers.inc"
#undef OCTAVO_OBSERVER

namespace {

#define OCTAVO_OBSERVER(record) &record,
const WeightObserver* const kObservers[] = {
#include "quant/observers/observers.inc"
};
#undef OCTAVO_OBSERVER

// The library's, whether they are here or not.
const std::string kLibraryNames[] = {
    "memoryless_minmax",  "static_minmax", "minmax",      "memoryless_mse",        "mse",
    "nvfp4_expanded_mse", "fouroversix",   "imatrix_mse", "nvfp4_expanded_imatrix"};

std::string WeightForm(const std::optional<std::string>& name) {
  std::string form = ObserverName(name.value_or("memoryless_minmax"));
  if (form == "minmax" || form == "static_minmax" || form == "memoryless")
    return "memoryless_minmax";
  if (form == "fouroversix") return "nvfp4_expanded_mse";
  return form == "mse" ? "memoryless_mse" : form;
}

}  // namespace

std::string ObserverName(std::string_view name) {
  std::string form(name);
  for (char& c : form)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return form;
}

Status UnknownObserver(std::string_view name, std::span<const std::string> here) {
  const std::span<const std::string> known(kLibraryNames);
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return Unsupported(
        fmt::format("the observer {} is not implemented; use {}", name, fmt::join(here, " or ")));
  }
  return NotFound(fmt::format("\"{}\" is no observer{}; known: {}", name, DidYouMean(name, known),
                              fmt::join(known, ", ")));
}

Result<const WeightObserver*> FindWeightObserver(const QuantizationArgs& args) {
  const std::string name = WeightForm(args.observer);
  std::vector<std::string> here;
  for (const WeightObserver* observer : kObservers) {
    if (observer->name == name) return observer;
    here.emplace_back(observer->name);
  }
  return UnknownObserver(name, here).Annotate("weights");
}

}  // namespace octavo
