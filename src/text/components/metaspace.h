// The settings that Metaspace has as pre-tokenizer and as decoder.
#pragma once

#include <string>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

enum class PrependScheme { kAlways, kFirst, kNever };

struct MetaspaceConfig {
  std::string replacement;  // one character, usually U+2581
  PrependScheme prepend = PrependScheme::kAlways;
  bool split = true;

  // Older files say "add_prefix_space" where newer ones say "prepend_scheme".
  static Result<MetaspaceConfig> FromConfig(const Value& config);
};

}  // namespace octavo
