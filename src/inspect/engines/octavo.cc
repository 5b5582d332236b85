// Octavo itself: whatever a scheme of its list computes, on CPUs.
#include "inspect/engine.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

Judgement Judge(const Subject& subject, const Machine&) {
  Judgement judgement;
  LinearLayer layer;
  layer.name = subject.name;
  layer.quantization = *subject.declared;
  const auto scheme = SelectScheme(layer);
  if (!scheme.ok()) {
    judgement.Add(Outcome::kRefused, scheme.status().message(), "", "inference-schemes 1.8");
    return judgement;
  }
  judgement.row = (*scheme)->name;
  if (subject.kind == ModuleKind::kEmbedding && subject.declared->weights &&
      (*scheme)->prepare_table == nullptr)
    judgement.Add(Outcome::kRefused, "an embedding of this scheme cannot be looked up",
                  "ignore the embedding", "inference-schemes 1.4");
  return judgement;
}

std::vector<Finding> JudgeModel(const ModelFacts&, const Machine&) {
  return {};
}

}  // namespace

extern const Engine kOctavo;
const Engine kOctavo = {"Octavo", /*has_gpu_kernels=*/false, Judge, JudgeModel};

}  // namespace octavo
