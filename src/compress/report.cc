#include "compress/report.h"

#include <algorithm>

namespace octavo {

int64_t QuantizationReport::layers_with_notes() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const LayerReport& layer) { return !layer.note.empty(); });
}

Value QuantizationReport::ToJson() const {
  Value json = Value::MakeObject();
  json.Set("samples", samples);
  json.Set("tokens", tokens);
  json.Set("truncated_samples", truncated_samples);
  json.Set("source_bytes", source_bytes);
  json.Set("output_bytes", output_bytes);
  json.Set("seconds", seconds);
  json.Set("cpu_seconds", cpu_seconds);
  json.Set("peak_rss_bytes", peak_rss_bytes);
  Value::Array layer_values;
  for (const LayerReport& layer : layers) {
    Value value = Value::MakeObject();
    value.Set("name", layer.name);
    value.Set("method", layer.method);
    value.Set("error_to_nearest", layer.error_to_nearest);
    value.Set("error", layer.error);
    if (!layer.note.empty()) value.Set("note", layer.note);
    layer_values.push_back(std::move(value));
  }
  json.Set("layers", std::move(layer_values));
  return json;
}

}  // namespace octavo
