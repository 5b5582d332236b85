// What engines lose that give layers which they run as one (q/k/v, gate/up) a single scale, where
// the checkpoint has one for each: computed from the checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "inspect/inspection.h"
#include "inspect/table.h"

namespace octavo {

enum class FusedScaleKind : uint8_t {
  kFp8Tensor,    // weights are rounded again, to the largest scale (inference-schemes 2.2)
  kNvfp4Global,  // all are divided by the largest divisor (inference-schemes 2.6)
};

// One group of layers whose scales differ.
struct FusedScaleLoss {
  FusedScaleKind kind = FusedScaleKind::kFp8Tensor;
  std::string role = {};   // "self_attn.q_proj + k_proj + v_proj"
  std::string block = {};  // "model.layers.3"
  double ratio = 1;        // the largest scale over the smallest
  double error = 0;        // ||W' - W|| / ||W|| over the whole group
  double worst_error = 0;  // of the layer that loses most
  std::string worst_layer = {};
};

// Every group that loses anything. Reads the weights of FP8 groups once. Groups whose tensors are
// not as declared are left out: Diagnose names them.
Result<std::vector<FusedScaleLoss>> FindFusedScaleLosses(const Inspection& inspection,
                                                         const Context& context);

// A row for each role: groups, largest ratio, mean and worst error, where.
Table FusedScaleTable(const std::vector<FusedScaleLoss>& losses);

// What rounding one FP8 weight again costs: sums over its codes, a histogram of which is `counts`
// [256], of (w' - w)^2 and w^2, where w = code * scale and w' is float16(w) rounded to E4M3 against
// `largest` (inference-schemes 2.2, "After loading").
struct RoundingLoss {
  double error = 0;
  double energy = 0;
};
RoundingLoss RequantizeE4M3(std::span<const int64_t> counts, float scale, float largest);

}  // namespace octavo
