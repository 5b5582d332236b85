// Octavo itself: whatever a scheme of its list computes, on CPUs.
#include "inspect/engine.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

Judgement Judge(const Subject& subject, const Machine&) {
  Judgement judgement;
  const Scheme* scheme = nullptr;
  for (const int64_t n : subject.n) {
    const auto selected = SelectScheme(
        {.name = subject.name, .n = n, .k = subject.k, .quantization = *subject.declared});
    if (!selected.ok()) {
      judgement.Add(Outcome::kRefused, selected.status().message(), "", "inference-schemes 1.8");
      return judgement;
    }
    scheme = *selected;
  }
  judgement.row = scheme->name;
  if (subject.kind == ModuleKind::kEmbedding && subject.declared->weights &&
      scheme->prepare_table == nullptr)
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
