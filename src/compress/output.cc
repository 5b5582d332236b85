#include "compress/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "compress/attention_scales.h"
#include "compress/report.h"
#include "io/passive_files.h"
#include "quant/scheme.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

// Tensors that are written block by block: what linear layers have but biases, the norms whose
// output they read, scales of attention; and the embedding's and the head's, where they are
// quantized.
std::set<std::string> BlockTensors(const QuantizationPlan& plan) {
  const Model& target = plan.target;
  std::set<std::string> names;
  const auto add = [&](const LinearLayer& layer) {
    const auto scheme = SelectScheme(layer);
    OCTAVO_CHECK(scheme.ok()) << scheme.status().message();
    for (const DeclaredTensor& declared : (*scheme)->declare(layer)) {
      if (declared.suffix != "bias") names.insert(layer.name + "." + declared.suffix);
    }
  };
  for (const Block& block : target.blocks) {
    for (const Norm* norm : {&block.attention_norm, &block.mlp_norm})
      if (norm->exists()) names.insert(norm->name + ".weight");
    for (const LinearGroup* group : block.groups()) {
      for (const LinearLayer& layer : group->layers) add(layer);
    }
  }
  for (const Block& block : target.blocks) {
    for (const DeclaredTensor& declared : DeclareAttentionScales(block, target.spec))
      names.insert(block.attention + "." + declared.suffix);
  }
  if (plan.quantizes_embedding()) add(target.embedding_layer);
  if (plan.quantizes_head()) add(target.head.layers.front());
  return names;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF64;
}

// In pieces: an embedding as float32 would be the largest thing in memory.
Status CheckFinite(const std::string& name, const TensorView& view) {
  if (!IsFloat(view.dtype)) return OkStatus();
  constexpr int64_t kPiece = int64_t{1} << 18;
  std::vector<float> values;
  for (int64_t first = 0; first < view.elements(); first += kPiece) {
    const int64_t count = std::min(kPiece, view.elements() - first);
    values.resize(static_cast<size_t>(count));
    const TensorView piece{.dtype = view.dtype,
                           .shape = {count},
                           .bytes = view.bytes + first * DTypeBytes(view.dtype)};
    OCTAVO_RETURN_IF_ERROR(ToFloat(piece, values));
    for (float value : values) {
      if (!std::isfinite(value)) return InvalidArgument(fmt::format("{} holds {}", name, value));
    }
  }
  return OkStatus();
}

// Scales of one byte, E4M3 or E8M0 (whose bytes are U8): neither NaN nor, where the format has it,
// zero.
Status CheckByteScales(const std::string& name, const TensorView& view) {
  const bool e4m3 = view.dtype == DType::kF8E4M3;
  for (int64_t i = 0; i < view.elements(); ++i) {
    const auto bits = static_cast<uint8_t>(view.bytes[i]);
    const float value = e4m3 ? FloatFromE4M3(bits) : FloatFromE8M0(bits);
    if (std::isnan(value) || value == 0) return Internal(fmt::format("{} holds {}", name, value));
  }
  return OkStatus();
}

Status CheckScales(const std::string& name, const TensorView& view) {
  if (!IsFloat(view.dtype)) return CheckByteScales(name, view);
  OCTAVO_RETURN_IF_ERROR(CheckFinite(name, view));
  OCTAVO_ASSIGN_OR_RETURN(const Tensor values, ToFloatTensor(view));
  for (float value : values.data<float>()) {
    if (value == 0) return Internal(name + " holds a scale of zero");
  }
  return OkStatus();
}

Status CheckTensors(const Checkpoint& output, const Checkpoint& source,
                    const QuantizationPlan& plan) {
  const std::set<std::string> from_blocks = BlockTensors(plan);
  for (const PlannedTensor& planned : plan.tensors) {
    OCTAVO_ASSIGN_OR_RETURN(const TensorView found, output.Find(planned.name));
    if (found.dtype != planned.dtype || found.shape != planned.shape) {
      return Internal(planned.name + " was written in another form than planned");
    }
    if (planned.name.ends_with("_scale")) OCTAVO_RETURN_IF_ERROR(CheckScales(planned.name, found));
    if (from_blocks.contains(planned.name)) continue;
    OCTAVO_ASSIGN_OR_RETURN(const TensorView original, source.Find(plan.SourceOf(planned.name)));
    if (std::memcmp(found.bytes, original.bytes, static_cast<size_t>(found.num_bytes())) != 0) {
      return Internal(planned.name + " differs from the source's, though it was to be copied");
    }
    output.Forget(planned.name);
    source.Forget(planned.name);
  }
  return OkStatus();
}

Status CheckReadBack(const LinearGroup& declared, const LinearGroup& loaded) {
  for (size_t i = 0; i < declared.layers.size(); ++i) {
    if (declared.layers[i].quantization == loaded.layers[i].quantization) continue;
    return Internal(declared.layers[i].name + " reads back with another scheme than was asked for");
  }
  return OkStatus();
}

Status CheckAttentionReadBack(const Block& declared, const Block& loaded) {
  if (declared.cache_quantization == loaded.cache_quantization &&
      declared.query_quantization == loaded.query_quantization)
    return OkStatus();
  return Internal(declared.attention + " reads back with another quantization of its cache");
}

}  // namespace

void ReportPlan(const LoadedModel& source, const QuantizationPlan& plan, const Dataset& dataset,
                Logger& log, QuantizationReport* report) {
  report->samples = std::ssize(dataset.samples);
  report->tokens = dataset.tokens;
  report->truncated_samples = dataset.truncated;
  report->source_bytes = source.checkpoint().total_bytes();
  report->dequantized_layers = source.dequantized_layers();
  for (const PlannedTensor& tensor : plan.tensors) {
    report->output_bytes += Elements(tensor.shape) * DTypeBytes(tensor.dtype);
  }
  log.Info(fmt::format("{} layers of {} blocks will be quantized; weights {:.1f} MB -> {:.1f} MB",
                       plan.owners.size(), plan.target.blocks.size(),
                       static_cast<double>(report->source_bytes) / 1e6,
                       static_cast<double>(report->output_bytes) / 1e6));
  if (!plan.needs_data()) return;
  log.Info(fmt::format("calibration: {} samples, {} tokens ({} samples cut)", report->samples,
                       report->tokens, report->truncated_samples));
}

void ReportEstimate(const Estimate& estimate, Logger& log) {
  constexpr double kMiB = 1024 * 1024;
  constexpr double kMB = 1e6;
  log.Info(fmt::format(
      "estimates: {:.0f} s; {:.0f} MiB of memory, calibration states {}; {:.1f} MB of disk, and "
      "{:.1f} MB more until it is finished",
      estimate.seconds, static_cast<double>(estimate.memory_bytes) / kMiB,
      estimate.hidden_in_memory ? "held in it" : "read from disk",
      static_cast<double>(estimate.output_bytes) / kMB,
      static_cast<double>(estimate.work_bytes) / kMB));
}

Status WriteUnquantizedTensors(const Checkpoint& checkpoint, const QuantizationPlan& plan,
                               CheckpointWriter* writer) {
  const std::set<std::string> from_blocks = BlockTensors(plan);
  for (const PlannedTensor& planned : plan.tensors) {
    if (from_blocks.contains(planned.name)) continue;
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(plan.SourceOf(planned.name)));
    if (!plan.unknown_tensors.contains(planned.name)) {
      OCTAVO_RETURN_IF_ERROR(CheckFinite(planned.name, view));
    }
    OCTAVO_RETURN_IF_ERROR(writer->Write(planned.name, view));
    checkpoint.Forget(planned.name);
  }
  return OkStatus();
}

Status WriteOtherFiles(const Checkpoint& checkpoint, const QuantizationPlan& plan,
                       const Recipe& recipe, const std::filesystem::path& folder) {
  Value config = checkpoint.config();
  config.Set("quantization_config", ToValue(plan.config));
  if (plan.unties_head || plan.rotation_unties_head) config.Set("tie_word_embeddings", false);
  OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(
      folder / "config.json",
      WriteJson(config, {.indent = 2, .sort_keys = true, .ensure_ascii = false})));
  OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(folder / "recipe.yaml", RecipeYaml(recipe)));
  auto copied = CopyPassiveFiles(checkpoint.folder(), folder);
  return copied.ok() ? OkStatus() : copied.status();
}

Status VerifyOutput(const std::filesystem::path& folder, const LoadedModel& source,
                    const QuantizationPlan& plan, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const auto reopened,
                          LoadModel(folder, {.prepare = {}, .load_blocks = false}, context));
  OCTAVO_RETURN_IF_ERROR(CheckTensors(reopened->checkpoint(), source.checkpoint(), plan));
  for (int64_t i = 0; i < source.model().spec.num_layers; ++i) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(reopened->LoadBlock(i, context));
    const auto declared = plan.target.blocks[static_cast<size_t>(i)].groups();
    const auto loaded = reopened->model().blocks[static_cast<size_t>(i)].groups();
    for (size_t g = 0; g < declared.size(); ++g) {
      OCTAVO_RETURN_IF_ERROR(CheckReadBack(*declared[g], *loaded[g]));
    }
    OCTAVO_RETURN_IF_ERROR(
        CheckAttentionReadBack(plan.target.blocks[static_cast<size_t>(i)],
                               reopened->model().blocks[static_cast<size_t>(i)]));
    reopened->ReleaseBlock(i);
  }
  return CheckReadBack(plan.target.head, reopened->model().head);
}

Status WriteReport(const QuantizationReport& report, const std::filesystem::path& folder) {
  return WriteFileAtomically(folder / "quantization_report.json",
                             WriteJson(ToJson(report), {.indent = 2}) + "\n");
}

}  // namespace octavo
