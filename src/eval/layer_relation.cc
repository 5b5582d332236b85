#include "eval/layer_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace octavo {

namespace {

// Scales that span less are the quantization's own.
constexpr float kScaledSpan = 1.2F;
// Least-squares scales below this are of rows or columns that were rounded to zero.
constexpr double kVanished = 0.1;
// Rounding to two bits leaves a cosine of 0.9; a rotation leaves next to none.
constexpr double kSameBasis = 0.5;

// model / base, element by element; empty where all are one.
std::vector<float> NormRatio(const Tensor& base, const Tensor& model) {
  const auto b = base.data<float>();
  const auto m = model.data<float>();
  if (std::equal(b.begin(), b.end(), m.begin())) return {};
  std::vector<float> ratio(b.size());
  for (size_t i = 0; i < b.size(); ++i) ratio[i] = b[i] == 0 ? 1.0F : m[i] / b[i];
  return ratio;
}

// dots / energies, 1 where that says nothing; empty where they are no real scales.
std::vector<float> RealScales(const std::vector<double>& dots,
                              const std::vector<double>& energies) {
  std::vector<float> scales(dots.size(), 1.0F);
  for (size_t i = 0; i < dots.size(); ++i) {
    const double scale = energies[i] > 0 ? dots[i] / energies[i] : 1;
    if (scale > kVanished) scales[i] = static_cast<float>(scale);
  }
  std::vector<float> sorted = scales;
  std::sort(sorted.begin(), sorted.end());
  const float low = sorted[sorted.size() / 10];
  const float high = sorted[sorted.size() - 1 - sorted.size() / 10];
  return high / low > kScaledSpan ? scales : std::vector<float>();
}

// The factor that best takes each row, or column, of w [n, k] to that of wq.
std::vector<float> RowScales(std::span<const float> w, std::span<const float> wq, size_t k,
                             bool of_columns) {
  const size_t n = w.size() / k;
  std::vector<double> dots(of_columns ? k : n), energies(of_columns ? k : n);
  for (size_t i = 0; i < w.size(); ++i) {
    const size_t unit = of_columns ? i % k : i / k;
    dots[unit] += static_cast<double>(wq[i]) * static_cast<double>(w[i]);
    energies[unit] += static_cast<double>(w[i]) * static_cast<double>(w[i]);
  }
  return RealScales(dots, energies);
}

void MultiplyColumns(std::span<const float> scales, std::span<float> w) {
  if (scales.empty()) return;
  for (size_t i = 0; i < w.size(); ++i) w[i] *= scales[i % scales.size()];
}

void MultiplyRows(std::span<const float> scales, std::span<float> w) {
  if (scales.empty()) return;
  const size_t k = w.size() / scales.size();
  for (size_t i = 0; i < w.size(); ++i) w[i] *= scales[i / k];
}

std::vector<float> Inverse(std::vector<float> scales) {
  for (float& scale : scales) scale = 1 / scale;
  return scales;
}

struct WeightSums {
  double energy = 0, model_energy = 0, dot = 0, error = 0;
};

WeightSums Sum(std::span<const float> w, std::span<const float> wq) {
  WeightSums sums;
  for (size_t i = 0; i < w.size(); ++i) {
    const auto a = static_cast<double>(w[i]);
    const auto b = static_cast<double>(wq[i]);
    sums.energy += a * a;
    sums.model_energy += b * b;
    sums.dot += a * b;
    sums.error += (b - a) * (b - a);
  }
  return sums;
}

// What is known before a layer's weights are looked at.
struct GroupPlace {
  const std::vector<float>* norm_ratio = nullptr;  // null: no norm is before it
  bool smoothed = false;                           // the block has a norm that differs
};

// `group` gets its input scale by the first layer where no norm says it.
Status RelateLayer(const LoadedModel& base, const LinearLayer& base_layer, const LoadedModel& model,
                   const LinearLayer& layer, const GroupPlace& place, GroupRelation* group,
                   LayerRelation* relation) {
  // The stored weights are those between transforms.
  if (!layer.input_transforms.empty() || !layer.output_transforms.empty()) return OkStatus();
  OCTAVO_ASSIGN_OR_RETURN(const Tensor weight, base.Weight(base_layer));
  OCTAVO_ASSIGN_OR_RETURN(Tensor quantized, model.Weight(layer));
  const auto w = weight.data<float>();
  const std::span<float> wq = quantized.mutable_data<float>();
  if (place.smoothed && place.norm_ratio == nullptr)
    group->input_scale =
        Inverse(RowScales(w, wq, static_cast<size_t>(layer.k), /*of_columns=*/true));
  MultiplyColumns(group->input_scale, wq);
  if (place.smoothed && place.norm_ratio != nullptr)
    relation->output_scale =
        Inverse(RowScales(w, wq, static_cast<size_t>(layer.k), /*of_columns=*/false));
  MultiplyRows(relation->output_scale, wq);
  const WeightSums sums = Sum(w, wq);
  if (sums.dot < kSameBasis * std::sqrt(sums.energy * sums.model_energy)) {
    relation->other_basis = true;
    relation->output_scale.clear();
  } else {
    relation->weight_sqnr_db = sums.error > 0 ? 10 * std::log10(sums.energy / sums.error)
                                              : std::numeric_limits<double>::infinity();
  }
  return OkStatus();
}

bool Tied(const GroupRelation& first, const GroupRelation& second) {
  return !second.input_scale.empty() || second.layers.front().other_basis ||
         std::any_of(first.layers.begin(), first.layers.end(),
                     [](const LayerRelation& layer) { return !layer.output_scale.empty(); });
}

}  // namespace

Status CheckSameSizes(const Model& base, const Model& model) {
  const auto sizes = [](const ModelSpec& spec) {
    return fmt::format(
        "{} blocks, hidden size {}, intermediate size {}, {} heads and {} key/value heads of {}, "
        "vocabulary {}",
        spec.num_layers, spec.hidden_size, spec.intermediate_size, spec.num_heads,
        spec.num_kv_heads, spec.head_dim, spec.vocab_size);
  };
  const std::string of_base = sizes(base.spec);
  const std::string of_model = sizes(model.spec);
  if (of_base == of_model) return OkStatus();
  return InvalidArgument(
      fmt::format("the models have different sizes and cannot be compared layer by layer: {}; {}",
                  of_base, of_model));
}

Result<BlockRelation> RelateBlocks(const LoadedModel& base, const LoadedModel& model, int64_t index,
                                   const Context& context) {
  const Block& base_block = base.model().blocks[static_cast<size_t>(index)];
  const Block& block = model.model().blocks[static_cast<size_t>(index)];
  const std::vector<float> attention =
      NormRatio(base_block.attention_norm.weight, block.attention_norm.weight);
  const std::vector<float> mlp = NormRatio(base_block.mlp_norm.weight, block.mlp_norm.weight);
  const bool smoothed = !attention.empty() || !mlp.empty();
  BlockRelation relation;
  const auto base_groups = base_block.groups();
  const auto groups = block.groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupPlace place{.smoothed = smoothed};
    if (groups[g] == &block.qkv) place.norm_ratio = &attention;
    if (groups[g] == &block.gate_up) place.norm_ratio = &mlp;
    GroupRelation& related = relation.groups.emplace_back();
    if (place.norm_ratio != nullptr) related.input_scale = *place.norm_ratio;
    // Layers in order: the group's input scale is that of its first.
    related.layers.resize(groups[g]->layers.size());
    std::vector<Status> statuses(related.layers.size());
    context.pool.ParallelFor(std::ssize(related.layers), [&](int64_t i) {
      const auto l = static_cast<size_t>(i);
      statuses[l] = RelateLayer(base, base_groups[g]->layers[l], model, groups[g]->layers[l], place,
                                &related, &related.layers[l]);
    });
    for (Status& status : statuses) OCTAVO_RETURN_IF_ERROR(std::move(status));
  }
  // R2 turns v and o alone; R1 also q and gate.
  relation.rotated = relation.groups[0].layers.front().other_basis ||
                     relation.groups[2].layers.front().other_basis;
  relation.attention_tied = Tied(relation.groups[0], relation.groups[1]);
  relation.mlp_tied = Tied(relation.groups[2], relation.groups[3]);
  return relation;
}

}  // namespace octavo
