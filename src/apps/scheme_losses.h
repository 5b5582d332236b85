// What quantizing a model by one scheme costs, measured: for `inspect --compare-schemes --text`.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/context.h"
#include "eval/windows.h"
#include "inspect/compare_schemes.h"
#include "runtime/load.h"

namespace octavo {

// Quantizes into a temporary folder, to nearest, and compares what comes out with the original.
class SchemeLosses {
 public:
  // The first windows of the text: few, since every scheme runs over them.
  static constexpr int64_t kWindow = 256;
  static constexpr int64_t kWindows = 8;

  static Result<std::unique_ptr<SchemeLosses>> Open(const std::string& model,
                                                    const std::string& text,
                                                    const Context& context);
  ~SchemeLosses();
  SchemeLosses(const SchemeLosses&) = delete;
  SchemeLosses& operator=(const SchemeLosses&) = delete;

  // Static scales are calibrated on the windows themselves. `declared` without weights: the
  // original against itself.
  Result<SchemeLoss> Measure(const QuantizationScheme& declared, const Context& context) const;

 private:
  SchemeLosses() = default;
  Status WriteCalibration() const;

  std::string model_;
  std::filesystem::path folder_;  // temporary
  std::unique_ptr<LoadedModel> base_;
  std::vector<Window> windows_;
};

}  // namespace octavo
