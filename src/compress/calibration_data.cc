#include "compress/calibration_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

Result<Dataset> ReadCalibration(const QuantizeOptions& options, const QuantizationPlan& plan) {
  if (!plan.needs_data()) return Dataset();
  if (options.calibration.empty()) {
    return InvalidArgument(
        fmt::format("the recipe needs calibration data (for {}): give --calibration FILE (rows "
                    "with \"messages\", \"conversations\", \"text\" or \"input_ids\")",
                    fmt::join(plan.needed_by, ", ")));
  }
  return ReadSamples(options);
}

Result<Dataset> ReadSamples(const QuantizeOptions& options) {
  const bool has_tokenizer = std::filesystem::exists(options.model / "tokenizer.json");
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  if (has_tokenizer) {
    OCTAVO_ASSIGN_OR_RETURN(tokenizer, Tokenizer::Load(options.model));
    auto found = ChatTemplate::Load(options.model);
    if (found.ok()) {
      chat_template = std::move(found).value();
    } else if (found.status().code() != StatusCode::kNotFound) {
      return found.status();
    }
  }
  return ReadDataset(options.calibration, options.dataset, tokenizer ? &*tokenizer : nullptr,
                     chat_template ? &*chat_template : nullptr);
}

}  // namespace octavo
