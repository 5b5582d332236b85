// LogarithmicEqualizationModifier: SmoothQuant with algorithm log_equalization, under the name that
// older recipes use (quantization 5.3).
#include "compress/modifiers/smoothquant.h"

namespace octavo {

namespace {

constexpr std::string_view kName = "LogarithmicEqualizationModifier";

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  return ParseSmoothQuant(kName, SmoothAlgorithm::kLogEqualization, settings, where, log);
}

}  // namespace

extern const ModifierClass kLogEqualizationModifier;
const ModifierClass kLogEqualizationModifier = {kName, Parse};

}  // namespace octavo
