// The files of a quantized checkpoint that are not one block's, and the check of the whole before
// it is handed over.
#pragma once

#include <filesystem>

#include "base/context.h"
#include "base/status.h"
#include "compress/plan.h"
#include "compress/recipe.h"
#include "io/checkpoint.h"
#include "io/checkpoint_writer.h"
#include "octavo/quantize.h"
#include "runtime/load.h"
#include "text/dataset.h"

namespace octavo {

// Logs what is about to happen (layers, sizes, tokens) and fills the report's figures of it.
void ReportPlan(const LoadedModel& source, const QuantizationPlan& plan, const Dataset& dataset,
                Logger& log, QuantizationReport* report);

void ReportEstimate(const Estimate& estimate, Logger& log);

// Copies every planned tensor that no block wrote: embeddings, head, final norm, biases, of which a
// NaN or Inf is refused by name; and unknown ones as they are.
Status WriteUnquantizedTensors(const Checkpoint& checkpoint, const QuantizationPlan& plan,
                               CheckpointWriter* writer);

// config.json (the source's, with quantization_config), recipe.yaml, and the source's passive files
// byte for byte.
Status WriteOtherFiles(const Checkpoint& checkpoint, const QuantizationPlan& plan,
                       const Recipe& recipe, const std::filesystem::path& folder);

// Opens the finished folder as a user would and checks it: every planned tensor there, every block
// loads under the scheme declared for it, scales finite and not zero, unquantized tensors equal to
// the source's.
Status VerifyOutput(const std::filesystem::path& folder, const LoadedModel& source,
                    const QuantizationPlan& plan, const Context& context);

Status WriteReport(const QuantizationReport& report, const std::filesystem::path& folder);

}  // namespace octavo
