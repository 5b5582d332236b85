#include "model/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/suggest.h"

namespace octavo {

#define OCTAVO_ARCHITECTURE(name) extern const Architecture name;
#include "model/arch/archs.inc"
#undef OCTAVO_ARCHITECTURE

std::span<const Architecture* const> Architectures() {
  static constexpr const Architecture* kArchitectures[] = {
#define OCTAVO_ARCHITECTURE(name) &name,
#include "model/arch/archs.inc"
#undef OCTAVO_ARCHITECTURE
  };
  return kArchitectures;
}

Result<const Architecture*> FindArchitecture(const Value& config) {
  const Value* classes = config.Find("architectures");
  if (classes == nullptr || !classes->is_array() || classes->as_array().empty() ||
      !classes->as_array()[0].is_string()) {
    return InvalidArgument(
        "config.json has no \"architectures\": a list with the model's class name is expected");
  }
  const std::string& wanted = classes->as_array()[0].as_string();
  std::vector<std::string> known;
  for (const Architecture* architecture : Architectures()) {
    for (const std::string& name : architecture->class_names) {
      if (name == wanted) return architecture;
      known.push_back(name);
    }
  }
  return Unsupported(fmt::format("the architecture {} is not supported yet{}; there is {}", wanted,
                                 DidYouMean(wanted, known), fmt::join(known, ", ")));
}

}  // namespace octavo
