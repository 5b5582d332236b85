#include "inspect/layer_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace octavo {

namespace {

std::string ArgsText(const QuantizationArgs& args, bool is_input) {
  std::string text = fmt::format("{}{} {}", args.type == QuantizationType::kInt ? "int" : "fp",
                                 args.num_bits, StrategyName(args.strategy));
  if (args.block_structure) {
    text += fmt::format(" {}x{}", args.block_structure->first, args.block_structure->second);
  } else if (args.group_size) {
    text += fmt::format(" {}", *args.group_size);
  }
  if (!args.symmetric) text += " asymmetric";
  if (is_input) text += args.dynamic == Dynamic::kFalse ? " static" : " dynamic";
  if (args.actorder == ActOrder::kGroup) text += ", scattered groups";
  return text;
}

std::string SchemeName(const InspectedModule& module) {
  if (module.layer != nullptr) return std::string(module.scheme ? module.scheme->name : "none");
  return module.kind == ModuleKind::kNorm ? "norm" : "-";
}

std::string Declared(const InspectedModule& module) {
  return module.layer == nullptr ? "-" : DeclaredText(module.layer->quantization);
}

std::string_view KindName(ModuleKind kind) {
  constexpr std::string_view kNames[] = {"linear", "head",   "embedding",
                                         "norm",   "online", "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

Cell ShapeCell(const Shape& shape) {
  Value sizes = Value::MakeArray();
  sizes.as_array().assign(shape.begin(), shape.end());
  return {std::move(sizes), shape.empty() ? "-" : fmt::format("{}", fmt::join(shape, " x "))};
}

Cell BitsCell(double bits) {
  return bits == 0 ? Cell(Value(), "-") : NumberCell(bits, 2);
}

double Share(int64_t bytes, int64_t total) {
  return total == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(total);
}

// Modules of one row.
struct Bucket {
  const InspectedModule* first = nullptr;
  std::string scheme;
  std::string declared;
  std::vector<std::string> roles;
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t bias_bytes = 0;

  double bits_per_weight() const {
    InspectedModule all = *first;
    all.bytes = bytes;
    all.bias_bytes = bias_bytes;
    return all.bits_per_weight() / static_cast<double>(count);
  }
};

std::vector<Bucket> MakeBuckets(const Inspection& inspection) {
  std::vector<Bucket> buckets;
  for (const InspectedModule& module : inspection.modules) {
    const std::string scheme = SchemeName(module);
    const std::string declared = Declared(module);
    auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& one) {
      return one.first->kind == module.kind && one.first->shape == module.shape &&
             one.scheme == scheme && one.declared == declared;
    });
    if (bucket == buckets.end())
      bucket = buckets.insert(buckets.end(), {&module, scheme, declared, {}});
    if (std::find(bucket->roles.begin(), bucket->roles.end(), module.role) == bucket->roles.end())
      bucket->roles.push_back(module.role);
    ++bucket->count;
    bucket->bytes += module.bytes;
    bucket->bias_bytes += module.bias_bytes;
  }
  return buckets;
}

std::string Roles(const Bucket& bucket, bool is_tied) {
  constexpr size_t kMostShown = 4;
  if (bucket.first->kind == ModuleKind::kEmbedding && is_tied)
    return bucket.roles.front() + " (also the head)";
  if (bucket.roles.size() <= kMostShown) return fmt::format("{}", fmt::join(bucket.roles, ", "));
  return fmt::format("{} and {} more",
                     fmt::join(bucket.roles.begin(), bucket.roles.begin() + kMostShown, ", "),
                     bucket.roles.size() - kMostShown);
}

}  // namespace

std::string ActivationText(const QuantizationArgs& args) {
  return ArgsText(args, true);
}

std::string DeclaredText(const QuantizationScheme& declared) {
  if (!declared.weights) return "dense";
  std::string text = ArgsText(*declared.weights, false);
  if (declared.input_activations) text += ", input " + ArgsText(*declared.input_activations, true);
  if (declared.output_activations)
    text += ", output " + ArgsText(*declared.output_activations, true);
  return text;
}

Table SummaryTable(const Inspection& inspection) {
  Table table = {.key = "summary",
                 .title = "",
                 .columns = {{"scheme", "scheme"},
                             {"declared", "declared"},
                             {"shape", "shape", true},
                             {"count", "count", true},
                             {"bytes", "size", true},
                             {"bits_per_weight", "bits/weight", true},
                             {"share", "share", true},
                             {"modules", "modules"}},
                 .rows = {}};
  const int64_t total = inspection.total_bytes();
  for (const Bucket& bucket : MakeBuckets(inspection)) {
    table.rows.push_back({bucket.scheme, bucket.declared, ShapeCell(bucket.first->shape),
                          bucket.count, BytesCell(bucket.bytes), BitsCell(bucket.bits_per_weight()),
                          ShareCell(Share(bucket.bytes, total)),
                          Roles(bucket, inspection.model->head_is_embedding)});
  }
  if (inspection.header_bytes > 0) {
    table.rows.push_back({"-", "-", ShapeCell({}), std::ssize(inspection.checkpoint->files()),
                          BytesCell(inspection.header_bytes), BitsCell(0),
                          ShareCell(Share(inspection.header_bytes, total)), "file headers"});
  }
  table.rows.push_back({"total", "", Cell(Value(), ""), Cell(Value(), ""), BytesCell(total),
                        Cell(Value(), ""), ShareCell(1), ""});
  return table;
}

Table LayersTable(const Inspection& inspection) {
  Table table = {.key = "layers",
                 .title = "Layers",
                 .columns = {{"name", "name"},
                             {"kind", "kind"},
                             {"shape", "shape", true},
                             {"bytes", "size", true},
                             {"bits_per_weight", "bits/weight", true},
                             {"share", "share", true},
                             {"scheme", "scheme"},
                             {"declared", "declared"}},
                 .rows = {}};
  const int64_t total = inspection.total_bytes();
  for (const InspectedModule& module : inspection.modules) {
    table.rows.push_back({module.name, KindName(module.kind), ShapeCell(module.shape),
                          BytesCell(module.bytes), BitsCell(module.bits_per_weight()),
                          ShareCell(Share(module.bytes, total)), SchemeName(module),
                          Declared(module)});
  }
  return table;
}

Table WhyTable(const InspectedModule& module) {
  Table table = {.key = "why",
                 .title = fmt::format("Why {} runs as {}", module.name, SchemeName(module)),
                 .columns = {{"row", "row", true},
                             {"scheme", "scheme"},
                             {"matches", "matches"},
                             {"differences", "because"}},
                 .rows = {},
                 .notes = {"declared: " + SchemeString(module.layer->quantization)}};
  for (const Scheme* scheme : AllSchemes()) {
    const std::vector<std::string> differences = scheme->differences(module.layer->quantization);
    table.rows.push_back({std::ssize(table.rows) + 1, scheme->name,
                          Cell(Value(differences.empty()), differences.empty() ? "yes" : "no"),
                          differences.empty()
                              ? Cell(Value::MakeArray(), "it computes what is declared")
                              : Cell::List(differences, "; ")});
    if (differences.empty()) break;
  }
  return table;
}

}  // namespace octavo
