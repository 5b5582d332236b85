#include "compress/report.h"

#include <algorithm>

namespace octavo {

Value ToJson(const LayerReport& report) {
  Value json = Value::MakeObject();
  json.Set("name", report.name);
  json.Set("method", report.method);
  json.Set("error_to_nearest", report.error_to_nearest);
  json.Set("error", report.error);
  if (!report.note.empty()) json.Set("note", report.note);
  return json;
}

Result<LayerReport> LayerReportFromJson(const Value& json) {
  LayerReport report;
  OCTAVO_ASSIGN_OR_RETURN(report.name, json.RequireString("name"));
  OCTAVO_ASSIGN_OR_RETURN(report.method, json.RequireString("method"));
  OCTAVO_ASSIGN_OR_RETURN(report.error_to_nearest, json.GetDouble("error_to_nearest", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.error, json.GetDouble("error", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.note, json.GetString("note", ""));
  return report;
}

Value ToJson(const Estimate& estimate) {
  Value json = Value::MakeObject();
  json.Set("seconds", estimate.seconds);
  json.Set("memory_bytes", estimate.memory_bytes);
  json.Set("output_bytes", estimate.output_bytes);
  json.Set("work_bytes", estimate.work_bytes);
  json.Set("hidden_in_memory", estimate.hidden_in_memory);
  return json;
}

int64_t QuantizationReport::layers_with_notes() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const LayerReport& layer) { return !layer.note.empty(); });
}

Value ToJson(const QuantizationReport& report) {
  Value json = Value::MakeObject();
  json.Set("samples", report.samples);
  json.Set("tokens", report.tokens);
  json.Set("truncated_samples", report.truncated_samples);
  json.Set("source_bytes", report.source_bytes);
  json.Set("dequantized_layers", report.dequantized_layers);
  json.Set("output_bytes", report.output_bytes);
  json.Set("seconds", report.seconds);
  json.Set("cpu_seconds", report.cpu_seconds);
  json.Set("peak_rss_bytes", report.peak_rss_bytes);
  Value::Array layer_values;
  for (const LayerReport& layer : report.layers) layer_values.push_back(ToJson(layer));
  json.Set("layers", std::move(layer_values));
  if (report.estimate) json.Set("estimate", ToJson(*report.estimate));
  return json;
}

Result<QuantizationReport> QuantizationReportFromJson(const Value& json) {
  QuantizationReport report;
  OCTAVO_ASSIGN_OR_RETURN(report.samples, json.RequireInt("samples"));
  OCTAVO_ASSIGN_OR_RETURN(report.tokens, json.RequireInt("tokens"));
  OCTAVO_ASSIGN_OR_RETURN(report.truncated_samples, json.RequireInt("truncated_samples"));
  OCTAVO_ASSIGN_OR_RETURN(report.source_bytes, json.RequireInt("source_bytes"));
  OCTAVO_ASSIGN_OR_RETURN(report.dequantized_layers, json.GetInt("dequantized_layers", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.output_bytes, json.RequireInt("output_bytes"));
  OCTAVO_ASSIGN_OR_RETURN(report.seconds, json.GetDouble("seconds", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.cpu_seconds, json.GetDouble("cpu_seconds", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.peak_rss_bytes, json.RequireInt("peak_rss_bytes"));
  const Value* layers = json.Find("layers");
  if (layers == nullptr || !layers->is_array()) return CorruptFile("no list of layers");
  for (const Value& layer : layers->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(LayerReport parsed, LayerReportFromJson(layer));
    report.layers.push_back(std::move(parsed));
  }
  return report;
}

}  // namespace octavo
