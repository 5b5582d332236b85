#include "quant/foreign/foreign_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "quant/strict_object.h"

namespace octavo {

#define OCTAVO_FOREIGN_FORMAT(record) extern const ForeignFormat record;
#include "quant/foreign/foreign.inc"
#undef OCTAVO_FOREIGN_FORMAT

std::span<const ForeignFormat* const> ForeignFormats() {
  static constexpr const ForeignFormat* kFormats[] = {
#define OCTAVO_FOREIGN_FORMAT(record) &record,
#include "quant/foreign/foreign.inc"
#undef OCTAVO_FOREIGN_FORMAT
  };
  return kFormats;
}

const ForeignFormat* FindForeignFormat(std::string_view quant_method) {
  const auto formats = ForeignFormats();
  const auto found = std::find_if(formats.begin(), formats.end(), [&](const auto* format) {
    return format->quant_method == quant_method;
  });
  return found == formats.end() ? nullptr : *found;
}

std::string EscapeRegex(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool is_word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (is_word) {
      escaped += c;
    } else {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

Result<std::vector<std::string>> FirstStrings(const Value& json,
                                              std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Value* value = json.Find(key);
    if (value == nullptr || value->is_null()) continue;
    return ParseStrings(*value, key);
  }
  return std::vector<std::string>();
}

QuantizationConfig OneGroup(QuantizationScheme scheme, std::vector<std::string> ignore,
                            std::string_view quant_method) {
  QuantizationConfig config;
  if (scheme.targets.empty()) scheme.targets = {"Linear"};
  config.format = scheme.format.value_or("dense");
  config.config_groups.emplace_back("group_0", std::move(scheme));
  config.ignore = std::move(ignore);
  config.quantization_status = "compressed";
  config.quant_method = quant_method;
  return config;
}

}  // namespace octavo
