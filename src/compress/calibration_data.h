// Where calibration begins: the samples of the user's file as token ids.
#pragma once

#include "base/status.h"
#include "compress/plan.h"
#include "octavo/quantize.h"
#include "text/dataset.h"

namespace octavo {

// The samples of options.calibration, through the tokenizer and chat template of options.model;
// none where the plan needs no data. InvalidArgument when it does and no file is given.
Result<Dataset> ReadCalibration(const QuantizeOptions& options, const QuantizationPlan& plan);
// The same where a file is given and is needed in any case.
Result<Dataset> ReadSamples(const QuantizeOptions& options);

}  // namespace octavo
