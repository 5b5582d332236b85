// `quantize --verify`: what came out, compared with what went in, on text that was not calibrated
// on.
#pragma once

#include <string>

#include "apps/command.h"
#include "apps/compare_checkpoints.h"
#include "octavo/quantize.h"

namespace octavo {

struct VerifyFlags {
  bool on = false;
  std::string text;
  GateBounds bounds;
};

// --verify, --verify-text, and the gate's behind "verify-".
void AddVerifyFlags(CLI::App& app, VerifyFlags* flags);

// The comparison to make once the quantization is done: the first windows of the text, else rows of
// the calibration data behind those that are calibrated on. Read before the work begins, so that
// what is missing shows at once.
Result<ComparisonRequest> PlanVerification(const VerifyFlags& flags,
                                           const QuantizeOptions& options);

}  // namespace octavo
