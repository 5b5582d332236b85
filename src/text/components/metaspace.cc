#include "text/components/metaspace.h"

#include <fmt/format.h>

#include "base/json.h"
#include "text/unicode.h"

namespace octavo {

Result<MetaspaceConfig> MetaspaceConfig::FromConfig(const Value& config) {
  MetaspaceConfig out;
  OCTAVO_ASSIGN_OR_RETURN(out.replacement, config.RequireString("replacement"));
  if (CountCodePoints(out.replacement) != 1) {
    return CorruptFile(fmt::format("replacement: expected one character, found {}",
                                   JsonString(out.replacement.substr(0, 40))));
  }
  OCTAVO_ASSIGN_OR_RETURN(out.split, config.GetBool("split", true));
  OCTAVO_ASSIGN_OR_RETURN(const bool prefix, config.GetBool("add_prefix_space", true));
  OCTAVO_ASSIGN_OR_RETURN(const std::string scheme,
                          config.GetString("prepend_scheme", prefix ? "always" : "never"));
  if (scheme == "always") {
    out.prepend = PrependScheme::kAlways;
  } else if (scheme == "first") {
    out.prepend = PrependScheme::kFirst;
  } else if (scheme == "never") {
    out.prepend = PrependScheme::kNever;
  } else {
    return CorruptFile(fmt::format("prepend_scheme: expected always, first or never, found {}",
                                   JsonString(scheme.substr(0, 40))));
  }
  return out;
}

}  // namespace octavo
