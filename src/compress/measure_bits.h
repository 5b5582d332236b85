// Measures what each candidate scheme costs each unit of layers.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/bit_table.h"
#include "compress/recipe.h"
#include "eval/sensitivity.h"
#include "octavo/quantize.h"
#include "runtime/load.h"

namespace octavo {

// The model and, for each candidate, the model quantized by it alone, in memory.
class CandidateModels {
 public:
  // Quantizes the model by each candidate into a folder beside options.out, loads what came out,
  // and removes the folder again. By GPTQ if flags.gptq, at most four bits alone (more lose next to
  // nothing to rounding); else to nearest, the scales searched for if flags.awq. Smoothing and what
  // is ignored are as flags say. InvalidArgument for a candidate that is no preset or cannot be
  // made.
  static Result<std::unique_ptr<CandidateModels>> Make(const std::vector<std::string>& candidates,
                                                       const RecipeFlags& flags,
                                                       const QuantizeOptions& options,
                                                       const Context& context);

  // Every unit alone by every candidate.
  Result<BitTable> Measure(const Context& context);
  // All units together, as chosen.
  Result<double> Divergence(const BitTable& table, const BitChoice& choice, const Context& context);

 private:
  CandidateModels() = default;

  std::vector<std::string> names_;
  int64_t group_size_ = 0;
  std::string method_;
  std::unique_ptr<LoadedModel> base_;
  std::vector<std::unique_ptr<LoadedModel>> models_;
  std::vector<Window> windows_;
};

// A piece of each of the first samples, so that many are met in few tokens.
std::vector<Window> ProbeWindows(const std::vector<std::vector<TokenId>>& samples);

// KL(options.model || options.out) on the same windows: what the choice cost in the end.
Result<double> MeasureOutput(const QuantizeOptions& options, const Context& context);

}  // namespace octavo
