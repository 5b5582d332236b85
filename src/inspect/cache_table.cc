#include "inspect/cache_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "inspect/layer_table.h"
#include "quant/kv_cache.h"

namespace octavo {

namespace {

// One of keys, values and queries of all blocks.
struct Part {
  std::string_view name;
  std::vector<const QuantizationArgs*> declared;  // of each block that declares it
  std::vector<float> scales;
  int64_t width = 0;  // of a row of one module
};

Cell ScalesCell(std::vector<float> scales) {
  if (scales.empty()) return Cell(Value(), "-");
  std::sort(scales.begin(), scales.end());
  const float median = scales[scales.size() / 2];
  Value value = Value::MakeObject();
  value.Set("min", static_cast<double>(scales.front()));
  value.Set("median", static_cast<double>(median));
  value.Set("max", static_cast<double>(scales.back()));
  return {std::move(value),
          fmt::format("{:.3g} to {:.3g}, median {:.3g}", scales.front(), scales.back(), median)};
}

// Bytes of a token in all modules; queries are not kept.
Cell KeptCell(const Part& part, bool is_kept, int64_t bytes_of_one) {
  if (!is_kept) return Cell(Value(), "-");
  return Cell(std::ssize(part.declared) * part.width * bytes_of_one);
}

}  // namespace

Table CacheTable(const Inspection& inspection) {
  const ModelSpec& spec = inspection.model->spec;
  Part keys{.name = "keys", .declared = {}, .scales = {}, .width = spec.kv_size()};
  Part values{.name = "values", .declared = {}, .scales = {}, .width = spec.kv_size()};
  Part queries{.name = "queries", .declared = {}, .scales = {}, .width = spec.q_size()};
  for (const Block& block : inspection.model->blocks) {
    if (!block.cache_quantization) continue;
    const auto add = [](const QuantizationArgs& args, const std::vector<float>& scales,
                        Part* part) {
      part->declared.push_back(&args);
      part->scales.insert(part->scales.end(), scales.begin(), scales.end());
    };
    add(*block.cache_quantization, block.cache.key_scales, &keys);
    add(*block.cache_quantization, block.cache.value_scales, &values);
    if (block.query_quantization)
      add(*block.query_quantization->input_activations, block.query_scales, &queries);
  }
  Table table = {.key = "cache",
                 .title = "Attention",
                 .columns = {{"part", "part"},
                             {"declared", "declared"},
                             {"modules", "modules", true},
                             {"scales", "scales"},
                             {"bytes_of_token", "bytes a token", true},
                             {"bf16_bytes_of_token", "in bf16", true}},
                 .rows = {}};
  for (const Part& part : {keys, values, queries}) {
    if (part.declared.empty()) continue;
    const bool is_kept = part.name != queries.name;
    table.rows.push_back(
        {part.name, ActivationText(*part.declared.front()), std::ssize(part.declared),
         ScalesCell(part.scales),
         KeptCell(part, is_kept, DTypeBytes(AttentionCodes(*part.declared.front()))),
         KeptCell(part, is_kept, DTypeBytes(DType::kBF16))});
  }
  return table;
}

}  // namespace octavo
