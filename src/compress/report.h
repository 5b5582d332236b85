// quantization_report.json: what was done to each layer and what it cost (octavo/quantize.h).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "octavo/quantize.h"

namespace octavo {

Value ToJson(const LayerReport& report);
Value ToJson(const AttentionReport& report);
Value ToJson(const Estimate& estimate);
Value ToJson(const QuantizationReport& report);

// "k_scale 0.031 to 0.12, median 0.05; v_scale ...": all modules together.
std::string ScaleSummary(const std::vector<AttentionReport>& modules);

// What ToJson wrote; CorruptFile for anything else.
Result<LayerReport> LayerReportFromJson(const Value& json);
Result<AttentionReport> AttentionReportFromJson(const Value& json);
Result<QuantizationReport> QuantizationReportFromJson(const Value& json);

}  // namespace octavo
