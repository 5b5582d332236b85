#include "compress/rotate_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compress/fold_rotations.h"
#include "runtime/online.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// All that the recipe's modifiers want, in their order.
struct AllTransforms {
  std::vector<TransformUse> uses;
  std::map<std::string, uint64_t> seeds;  // of groups
  bool folds_norms = false;
};

Result<AllTransforms> CollectTransforms(const Recipe& recipe, const Model& graph) {
  AllTransforms all;
  std::string_view before;  // a modifier that makes none
  bool any_online = false;
  for (const auto& modifier : recipe.modifiers) {
    auto transforms = modifier->Transforms(graph);
    if (!transforms.ok()) return transforms.status().Annotate(modifier->class_name());
    if (!*transforms) {
      before = modifier->class_name();
      continue;
    }
    if (!before.empty() || (any_online && (*transforms)->folds_norms)) {
      return InvalidArgument(fmt::format(
          "{0} stands behind {1}, but must come before it: put {0} first", modifier->class_name(),
          before.empty() ? "a modifier whose rotations are applied at run time" : before));
    }
    std::set<std::string> groups;
    for (TransformUse& use : (*transforms)->uses) {
      if (all.seeds.contains(use.group)) {
        return InvalidArgument(fmt::format("{}: {} is the name of an earlier rotation",
                                           modifier->class_name(), use.group));
      }
      groups.insert(use.group);
      any_online = any_online || use.is_online();
      all.uses.push_back(std::move(use));
    }
    for (const std::string& group : groups) all.seeds[group] = (*transforms)->seed;
    all.folds_norms = all.folds_norms || (*transforms)->folds_norms;
  }
  return all;
}

Status CheckUse(const TransformUse& use) {
  if (use.randomize) {
    return Unsupported(use.Name() +
                       ": randomize (a permutation of its own for each weight) is not supported");
  }
  if (use.precision != "torch.float64" && use.precision != "torch.float32") {
    return Unsupported(
        fmt::format("{}: matrices are stored as torch.float64 or torch.float32, not {}", use.Name(),
                    use.precision));
  }
  return OkStatus();
}

// Puts rotated tensors in the place of a checkpoint's.
class Rotator {
 public:
  Rotator(const AllTransforms& transforms, LoadedModel* source, QuantizationPlan* plan,
          const Context& context)
      : transforms_(transforms),
        source_(source),
        plan_(plan),
        context_(context),
        original_(std::make_shared<const Checkpoint>(source->checkpoint())),
        matched_(transforms.uses.size(), false) {}

  Status Run() {
    Model& target = plan_->target;
    OCTAVO_RETURN_IF_ERROR(RotateEmbedding());
    for (Block& block : target.blocks) {
      OCTAVO_RETURN_IF_ERROR(StoreMatrices({block.attention, target.attention_class},
                                           {{TransformLocation::kQuery, target.spec.head_dim},
                                            {TransformLocation::kKey, target.spec.head_dim}}));
      OCTAVO_RETURN_IF_ERROR(RotateGroup(block.qkv, block.attention_norm.name));
      OCTAVO_RETURN_IF_ERROR(RotateGroup(block.attention_output, ""));
      OCTAVO_RETURN_IF_ERROR(RotateGroup(block.gate_up, block.mlp_norm.name));
      OCTAVO_RETURN_IF_ERROR(RotateGroup(block.down, ""));
    }
    OCTAVO_RETURN_IF_ERROR(RotateHead());
    return CheckAllMatched();
  }

 private:
  Result<std::shared_ptr<const Rotation>> RotationOf(const TransformUse& use,
                                                     std::string_view module, int64_t width) {
    const int64_t n = use.block.value_or(width);
    if (width % n != 0) {
      return InvalidArgument(
          fmt::format("{} of {}: blocks of {} do not divide its {}; give a transform_block_size "
                      "that divides all it is for",
                      use.Name(), module, n, width));
    }
    std::shared_ptr<const Rotation>& rotation = rotations_[{use.group, n}];
    if (rotation != nullptr) return rotation;
    auto made = Rotation::Make(use.type, use.group, n, transforms_.seeds.at(use.group));
    if (!made.ok()) return made.status().Annotate(fmt::format("{} of {}", use.Name(), module));
    rotation = std::make_shared<const Rotation>(*std::move(made));
    return rotation;
  }

  // What is folded into a module's weight [n, k]. Rows of the embedding are its outputs.
  Result<WeightRotation> FoldsOf(const ModuleName& module, int64_t n, int64_t k) {
    WeightRotation rotation;
    const bool is_embedding = module.class_name == "Embedding";
    for (size_t i = 0; i < transforms_.uses.size(); ++i) {
      const TransformUse& use = transforms_.uses[i];
      if (use.is_online()) continue;
      OCTAVO_ASSIGN_OR_RETURN(const bool matches, use.Matches(module));
      if (!matches) continue;
      matched_[i] = true;
      const bool is_input = use.location == TransformLocation::kWeightInput;
      if (is_input && is_embedding) {
        return Unsupported(fmt::format("{} of {}: an embedding has no input to be rotated",
                                       use.Name(), module.name));
      }
      const int64_t width = is_input || is_embedding ? k : n;
      OCTAVO_ASSIGN_OR_RETURN(auto matrix, RotationOf(use, module.name, width));
      // weight_input is W H^T, weight_output H^T W, and of an embedding E H.
      auto& steps = is_input || is_embedding ? rotation.rows : rotation.columns;
      steps.push_back({std::move(matrix), is_input ? use.inverse : !use.inverse});
    }
    return rotation;
  }

  // Stores the matrices of a module's transforms at run time, each size of a group once.
  Status StoreMatrices(const ModuleName& module,
                       const std::vector<std::pair<TransformLocation, int64_t>>& places) {
    for (size_t i = 0; i < transforms_.uses.size(); ++i) {
      const TransformUse& use = transforms_.uses[i];
      for (const auto& [location, width] : places) {
        if (use.location != location) continue;
        OCTAVO_ASSIGN_OR_RETURN(const bool matches, use.Matches(module));
        if (!matches) continue;
        matched_[i] = true;
        OCTAVO_ASSIGN_OR_RETURN(auto matrix, RotationOf(use, module.name, width));
        if (!stored_.insert({use.group, matrix->size()}).second) continue;
        const DType dtype = use.precision == "torch.float32" ? DType::kF32 : DType::kF64;
        Replace(use.TensorName(module.name),
                [matrix, dtype]() -> Result<Tensor> { return matrix->Stored(dtype); });
      }
    }
    return OkStatus();
  }

  void Replace(const std::string& name, Checkpoint::MakeTensor make) {
    source_->mutable_checkpoint().Replace({}, name, std::move(make));
  }

  // `tensor` is what the layer's weight was until now.
  void ReplaceWeight(const LinearLayer& layer, const std::string& tensor, const std::string& norm,
                     WeightRotation rotation) {
    if (norm.empty() && rotation.empty()) return;
    const bool quantized = layer.quantization.weights.has_value();
    const std::string bias = layer.name + ".bias";
    if (!rotation.columns.empty() && original_->Contains(bias)) {
      Replace(bias, [original = original_, bias, columns = rotation.columns]() -> Result<Tensor> {
        OCTAVO_ASSIGN_OR_RETURN(const TensorView view, original->Find(bias));
        return RotateBias(view, columns);
      });
    }
    Replace(layer.name + ".weight",
            [original = original_, tensor, norm, rotation = std::move(rotation), quantized,
             spec = plan_->target.spec, shape = Shape{layer.n, layer.k},
             &context = context_]() -> Result<Tensor> {
              OCTAVO_ASSIGN_OR_RETURN(const TensorView view, original->Find(tensor));
              if (view.shape != shape) {
                return InvalidArgument(fmt::format("{}: shape {}, expected {}", tensor,
                                                   ShapeString(view.shape), ShapeString(shape)));
              }
              Tensor gains;
              if (!norm.empty()) {
                OCTAVO_ASSIGN_OR_RETURN(const TensorView stored, original->Find(norm + ".weight"));
                OCTAVO_ASSIGN_OR_RETURN(gains, ReadNormWeight(spec, stored, stored.elements()));
              }
              auto rotated =
                  RotateWeight(view, gains.empty() ? std::span<const float>() : gains.data<float>(),
                               rotation, quantized ? DType::kF32 : view.dtype, context);
              original->Forget(tensor);
              return rotated;
            });
  }

  // The gain is in the layers behind it.
  void ReplaceNorm(const std::string& norm) {
    const std::string name = norm + ".weight";
    const float one = plan_->target.spec.norm_adds_one ? 0.0F : 1.0F;
    Replace(name, [original = original_, name, one]() -> Result<Tensor> {
      OCTAVO_ASSIGN_OR_RETURN(const TensorView view, original->Find(name));
      const std::vector<float> ones(static_cast<size_t>(view.elements()), one);
      return FromFloat(ones, view.dtype, view.shape);
    });
  }

  Status RotateEmbedding() {
    const LinearLayer& embedding = plan_->target.embedding_layer;
    OCTAVO_ASSIGN_OR_RETURN(WeightRotation rotation,
                            FoldsOf({embedding.name, "Embedding"}, embedding.n, embedding.k));
    rotates_embedding_ = !rotation.empty();
    ReplaceWeight(embedding, embedding.name + ".weight", "", std::move(rotation));
    return OkStatus();
  }

  // `norm` makes the group's input; empty: none does.
  Status RotateGroup(const LinearGroup& group, const std::string& norm) {
    const std::string folded = transforms_.folds_norms ? norm : "";
    for (const LinearLayer& layer : group.layers) {
      const ModuleName module{layer.name, "Linear"};
      OCTAVO_RETURN_IF_ERROR(StoreMatrices(
          module, {{TransformLocation::kInput, layer.k}, {TransformLocation::kOutput, layer.n}}));
      OCTAVO_ASSIGN_OR_RETURN(WeightRotation rotation, FoldsOf(module, layer.n, layer.k));
      ReplaceWeight(layer, layer.name + ".weight", folded, std::move(rotation));
    }
    if (!folded.empty()) ReplaceNorm(folded);
    return OkStatus();
  }

  // A tied head gets a tensor of its own where it or the embedding is rotated. Where neither is,
  // the final norm's gain stays where it is, and they stay tied.
  Status RotateHead() {
    const Model& target = plan_->target;
    const LinearLayer& head = target.head.layers.front();
    const ModuleName module{head.name, "Linear"};
    OCTAVO_RETURN_IF_ERROR(StoreMatrices(
        module, {{TransformLocation::kInput, head.k}, {TransformLocation::kOutput, head.n}}));
    OCTAVO_ASSIGN_OR_RETURN(WeightRotation rotation, FoldsOf(module, head.n, head.k));
    const bool tied = source_->model().head_is_embedding;
    if (tied && rotation.empty() && !rotates_embedding_) return OkStatus();
    const std::string norm = transforms_.folds_norms ? target.names.final_norm : "";
    ReplaceWeight(head, (tied ? target.names.embedding : head.name) + ".weight", norm,
                  std::move(rotation));
    if (!norm.empty()) ReplaceNorm(norm);
    plan_->rotation_unties_head = tied;
    if (tied) {
      context_.log.Info(
          fmt::format("{} and {} were one tensor; rotated they differ, and the output has both",
                      target.names.embedding, head.name));
    }
    return OkStatus();
  }

  // Online uses are checked with what they are applied to (LoadTransforms).
  Status CheckAllMatched() const {
    for (size_t i = 0; i < matched_.size(); ++i) {
      const TransformUse& use = transforms_.uses[i];
      if (matched_[i]) continue;
      return InvalidArgument(
          fmt::format("{} matches no module: {}; layers are named like {}", use.Name(),
                      use.targets.empty() ? "it has no targets" : use.targets.front().text(),
                      plan_->target.blocks.front().qkv.layers.front().name));
    }
    return OkStatus();
  }

  const AllTransforms& transforms_;
  LoadedModel* source_;
  QuantizationPlan* plan_;
  const Context& context_;
  std::shared_ptr<const Checkpoint> original_;  // as it was before
  std::vector<bool> matched_;
  bool rotates_embedding_ = false;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<const Rotation>> rotations_;
  std::set<std::pair<std::string, int64_t>> stored_;
};

// Layers that share an input share its statistics, and engines run them as one.
Status CheckShared(const Model& model) {
  for (const Block& block : model.blocks) {
    for (const LinearGroup* group : block.groups()) {
      const LinearLayer& first = group->layers.front();
      for (const LinearLayer& layer : group->layers) {
        if (layer.input_transforms == first.input_transforms) continue;
        return InvalidArgument(
            fmt::format("{} and {} read the same input, but it would be rotated for one of them "
                        "only; target both, or ignore both",
                        first.name, layer.name));
      }
    }
  }
  return OkStatus();
}

void LogRotations(const AllTransforms& transforms, Logger& log) {
  std::set<std::string> online;
  std::set<std::string> folded;
  for (const TransformUse& use : transforms.uses)
    (use.is_online() ? online : folded).insert(use.group);
  log.Info(fmt::format("rotations in the weights: {}; at run time: {}{}", fmt::join(folded, ", "),
                       online.empty() ? "none" : fmt::format("{}", fmt::join(online, ", ")),
                       transforms.folds_norms ? "; gains of norms are in the layers behind" : ""));
}

}  // namespace

Status RotateModel(const Recipe& recipe, LoadedModel* source, QuantizationPlan* plan,
                   const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const AllTransforms transforms, CollectTransforms(recipe, plan->target));
  if (transforms.uses.empty()) return OkStatus();
  for (const TransformUse& use : transforms.uses) OCTAVO_RETURN_IF_ERROR(CheckUse(use));
  OCTAVO_RETURN_IF_ERROR(Rotator(transforms, source, plan, context).Run());
  LogRotations(transforms, context.log);

  Value config = ToValue(transforms.uses);
  const Checkpoint& checkpoint = source->checkpoint();
  OCTAVO_ASSIGN_OR_RETURN(plan->online_tensors, LoadTransforms(config, checkpoint, &plan->target));
  OCTAVO_RETURN_IF_ERROR(CheckShared(plan->target));
  const auto in_source = LoadTransforms(config, checkpoint, &source->mutable_model());
  if (!in_source.ok()) return in_source.status();
  for (const std::string& name : plan->online_tensors) checkpoint.Forget(name);
  plan->transform_config = std::move(config);
  return source->TensorsWereReplaced(plan->online_tensors);
}

}  // namespace octavo
