// Every preset, as it would be for one model: bytes computed, and where it would run.
#pragma once

#include <functional>

#include "base/status.h"
#include "inspect/inspection.h"
#include "inspect/table.h"

namespace octavo {

// Measured on a text.
struct SchemeLoss {
  double perplexity = 0;
  double kl = 0;         // mean KL(original || quantized), nats a token
  double same_top1 = 0;  // share of positions with the same most likely token
};
using MeasureScheme = std::function<Result<SchemeLoss>(const QuantizationScheme& declared)>;

// A row for each preset, all linear layers but the head quantized: declared, bytes of the model and
// their share of the unquantized one's, bits per weight of those layers, what Octavo does with it,
// and the machines on which each engine runs it. Groups of integer weights that do not divide every
// k are made smaller; a preset that still does not fit is a note. With `measure`, also what each
// costs; its errors are the function's.
Result<Table> CompareSchemesTable(const Inspection& inspection,
                                  const MeasureScheme& measure = nullptr);

}  // namespace octavo
