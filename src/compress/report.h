// quantization_report.json: what was done to each layer and what it cost (octavo/quantize.h).
#pragma once

#include "base/status.h"
#include "base/value.h"
#include "octavo/quantize.h"

namespace octavo {

Value ToJson(const LayerReport& report);
Value ToJson(const Estimate& estimate);
Value ToJson(const QuantizationReport& report);

// What ToJson wrote; CorruptFile for anything else.
Result<LayerReport> LayerReportFromJson(const Value& json);
Result<QuantizationReport> QuantizationReportFromJson(const Value& json);

}  // namespace octavo
