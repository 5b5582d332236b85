#include "compress/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {

namespace {

Value Scales(const std::vector<float>& scales) {
  Value::Array values;
  for (const float scale : scales) values.emplace_back(static_cast<double>(scale));
  return values;
}

// None where there is no such member.
Result<std::vector<float>> ParseScales(const Value& json, std::string_view key) {
  std::vector<float> scales;
  const Value* values = json.Find(key);
  if (values == nullptr) return scales;
  if (!values->is_array()) return CorruptFile(std::string(key) + " is no list");
  for (const Value& value : values->as_array()) {
    if (!value.is_number())
      return CorruptFile(std::string(key) + " holds something else than numbers");
    scales.push_back(static_cast<float>(value.as_double()));
  }
  return scales;
}

}  // namespace

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

Value ToJson(const AttentionReport& report) {
  Value json = Value::MakeObject();
  json.Set("name", report.name);
  json.Set("k_scale", Scales(report.key_scales));
  json.Set("v_scale", Scales(report.value_scales));
  if (!report.query_scales.empty()) json.Set("q_scale", Scales(report.query_scales));
  json.Set("k_error", report.key_error);
  json.Set("v_error", report.value_error);
  if (!report.query_scales.empty()) json.Set("q_error", report.query_error);
  return json;
}

Result<AttentionReport> AttentionReportFromJson(const Value& json) {
  AttentionReport report;
  OCTAVO_ASSIGN_OR_RETURN(report.name, json.RequireString("name"));
  OCTAVO_ASSIGN_OR_RETURN(report.key_scales, ParseScales(json, "k_scale"));
  OCTAVO_ASSIGN_OR_RETURN(report.value_scales, ParseScales(json, "v_scale"));
  OCTAVO_ASSIGN_OR_RETURN(report.query_scales, ParseScales(json, "q_scale"));
  OCTAVO_ASSIGN_OR_RETURN(report.key_error, json.GetDouble("k_error", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.value_error, json.GetDouble("v_error", 0));
  OCTAVO_ASSIGN_OR_RETURN(report.query_error, json.GetDouble("q_error", 0));
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
  if (!report.attention.empty()) {
    Value::Array modules;
    for (const AttentionReport& module : report.attention) modules.push_back(ToJson(module));
    json.Set("attention", std::move(modules));
  }
  if (report.estimate) json.Set("estimate", ToJson(*report.estimate));
  return json;
}

std::string ScaleSummary(const std::vector<AttentionReport>& modules) {
  std::string text;
  const auto add = [&](std::string_view name, std::vector<float> AttentionReport::*member) {
    std::vector<float> scales;
    for (const AttentionReport& module : modules)
      scales.insert(scales.end(), (module.*member).begin(), (module.*member).end());
    if (scales.empty()) return;
    std::sort(scales.begin(), scales.end());
    text += fmt::format("{}{} {:.3g} to {:.3g}, median {:.3g}", text.empty() ? "" : "; ", name,
                        scales.front(), scales.back(), scales[scales.size() / 2]);
  };
  add("k_scale", &AttentionReport::key_scales);
  add("v_scale", &AttentionReport::value_scales);
  add("q_scale", &AttentionReport::query_scales);
  return text;
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
  if (const Value* modules = json.Find("attention")) {
    if (!modules->is_array()) return CorruptFile("\"attention\" is no list");
    for (const Value& module : modules->as_array()) {
      OCTAVO_ASSIGN_OR_RETURN(AttentionReport parsed, AttentionReportFromJson(module));
      report.attention.push_back(std::move(parsed));
    }
  }
  return report;
}

}  // namespace octavo
