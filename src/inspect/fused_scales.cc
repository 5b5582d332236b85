#include "inspect/fused_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

bool HasTensorScale(const QuantizationScheme& declared) {
  const auto& weights = declared.weights;
  return weights && weights->type == QuantizationType::kFloat && weights->num_bits == 8 &&
         weights->strategy == Strategy::kTensor;
}

bool HasGlobalScaleOf(const QuantizationScheme& declared) {
  return declared.weights && HasGlobalScale(*declared.weights);
}

// The one number in "<layer>.<suffix>"; 0 where there is none.
float ReadScalar(const Checkpoint& checkpoint, const std::string& name) {
  const auto view = checkpoint.Find(name);
  float value = 0;
  if (!view.ok() || view->elements() != 1 || !ToFloat(*view, {&value, 1}).ok()) return 0;
  return std::isfinite(value) && value > 0 ? value : 0;
}

// Scales of all layers, or nothing where one has none.
std::vector<float> ReadScalars(const Checkpoint& checkpoint, const LinearGroup& group,
                               std::string_view suffix) {
  std::vector<float> scales;
  for (const LinearLayer& layer : group.layers) {
    scales.push_back(ReadScalar(checkpoint, fmt::format("{}.{}", layer.name, suffix)));
    if (scales.back() == 0) return {};
  }
  return scales;
}

// How often each byte occurs; all zero where the tensor is not as declared.
std::array<int64_t, 256> CountCodes(const Checkpoint& checkpoint, const LinearLayer& layer) {
  std::array<int64_t, 256> counts = {};
  const auto view = checkpoint.Find(layer.name + ".weight");
  if (!view.ok() || view->dtype != DType::kF8E4M3) return counts;
  const auto* codes = reinterpret_cast<const uint8_t*>(view->bytes);
  for (int64_t i = 0; i < view->elements(); ++i) ++counts[codes[i]];
  checkpoint.Forget(layer.name + ".weight");
  return counts;
}

// "self_attn.q_proj + k_proj + v_proj".
std::string Role(const Block& block, const LinearGroup& group) {
  std::string role = group.layers.front().name.substr(block.name.size() + 1);
  for (size_t i = 1; i < group.layers.size(); ++i) {
    const std::string& name = group.layers[i].name;
    role += " + " + name.substr(name.rfind('.') + 1);
  }
  return role;
}

void AddLayerLoss(const RoundingLoss& loss, const std::string& layer, RoundingLoss* total,
                  FusedScaleLoss* group) {
  total->error += loss.error;
  total->energy += loss.energy;
  const double error = loss.energy > 0 ? std::sqrt(loss.error / loss.energy) : 0;
  if (error <= group->worst_error) return;
  group->worst_error = error;
  group->worst_layer = layer;
}

FusedScaleLoss Fp8Loss(const Checkpoint& checkpoint, const LinearGroup& group,
                       const std::vector<float>& scales) {
  FusedScaleLoss loss = {.kind = FusedScaleKind::kFp8Tensor};
  RoundingLoss total;
  const float largest = *std::max_element(scales.begin(), scales.end());
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto counts = CountCodes(checkpoint, group.layers[i]);
    AddLayerLoss(RequantizeE4M3(counts, scales[i], largest), group.layers[i].name, &total, &loss);
  }
  loss.error = total.energy > 0 ? std::sqrt(total.error / total.energy) : 0;
  return loss;
}

// Each layer is off by the factor between its divisor and the largest; energies are taken as if
// each layer's elements were of one size in its own scale.
FusedScaleLoss GlobalLoss(const LinearGroup& group, const std::vector<float>& divisors) {
  FusedScaleLoss loss = {.kind = FusedScaleKind::kNvfp4Global};
  RoundingLoss total;
  const std::vector<double> wide(divisors.begin(), divisors.end());
  const double largest = *std::max_element(wide.begin(), wide.end());
  for (size_t i = 0; i < wide.size(); ++i) {
    const LinearLayer& layer = group.layers[i];
    const double off = 1 - wide[i] / largest;
    const double energy = static_cast<double>(layer.n) / (wide[i] * wide[i]);
    AddLayerLoss({.error = off * off * energy, .energy = energy}, layer.name, &total, &loss);
  }
  loss.error = std::sqrt(total.error / total.energy);
  return loss;
}

}  // namespace

RoundingLoss RequantizeE4M3(std::span<const int64_t> counts, float scale, float largest) {
  RoundingLoss loss;
  for (size_t code = 0; code < counts.size(); ++code) {
    const float value = FloatFromE4M3(static_cast<uint8_t>(code));
    if (counts[code] == 0 || std::isnan(value)) continue;
    const float wide = RoundToDType(value * scale, DType::kF16);
    const double exact = static_cast<double>(value) * static_cast<double>(scale);
    const float again = FloatFromE4M3(E4M3FromFloat(wide * (1 / largest))) * largest;
    const double error = static_cast<double>(again) - exact;
    const auto count = static_cast<double>(counts[code]);
    loss.error += count * error * error;
    loss.energy += count * exact * exact;
  }
  return loss;
}

Result<std::vector<FusedScaleLoss>> FindFusedScaleLosses(const Inspection& inspection,
                                                         const Context& context) {
  std::vector<FusedScaleLoss> losses;
  if (inspection.checkpoint == nullptr) return losses;
  const Checkpoint& checkpoint = *inspection.checkpoint;
  for (const Block& block : inspection.model->blocks) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    for (const LinearGroup* group : block.groups()) {
      const QuantizationScheme& declared = group->layers.front().quantization;
      const bool fp8 = HasTensorScale(declared);
      if (group->layers.size() < 2 || !(fp8 || HasGlobalScaleOf(declared))) continue;
      const auto scales =
          ReadScalars(checkpoint, *group, fp8 ? "weight_scale" : "weight_global_scale");
      if (scales.empty()) continue;
      const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
      if (*least == *most) continue;
      FusedScaleLoss loss = fp8 ? Fp8Loss(checkpoint, *group, scales) : GlobalLoss(*group, scales);
      loss.role = Role(block, *group);
      loss.block = block.name;
      loss.ratio = static_cast<double>(*most) / static_cast<double>(*least);
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

Table FusedScaleTable(const std::vector<FusedScaleLoss>& losses) {
  Table table = {.key = "fused_scales",
                 .title = "Scales of layers that engines run as one",
                 .columns = {{"layers", "layers"},
                             {"groups", "groups", true},
                             {"largest_ratio", "scales differ", true},
                             {"mean_error", "mean error", true},
                             {"worst_error", "worst layer", true},
                             {"worst_layer", "which"}},
                 .rows = {}};
  std::vector<std::string> roles;
  for (const FusedScaleLoss& loss : losses) {
    if (std::find(roles.begin(), roles.end(), loss.role) == roles.end()) roles.push_back(loss.role);
  }
  for (const std::string& role : roles) {
    int64_t groups = 0;
    double errors = 0;
    double ratio = 1;
    const FusedScaleLoss* worst = nullptr;
    for (const FusedScaleLoss& loss : losses) {
      if (loss.role != role) continue;
      ++groups;
      errors += loss.error;
      ratio = std::max(ratio, loss.ratio);
      if (worst == nullptr || loss.worst_error > worst->worst_error) worst = &loss;
    }
    table.rows.push_back({role, groups, Cell(ratio, fmt::format("{:.2f} x", ratio)),
                          ShareCell(errors / static_cast<double>(groups)),
                          ShareCell(worst->worst_error), worst->worst_layer});
  }
  table.notes = {
      "Error: ||W' - W|| / ||W|| of the weights, once an engine has given each group one scale. "
      "Octavo keeps each layer's own."};
  return table;
}

}  // namespace octavo
