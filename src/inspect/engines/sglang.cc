// SGLang: its decision table for linear layers and its kernels (main, August to September 2026), as
// inference-schemes 1.7 and 5 tell how it differs from vLLM.
#include <fmt/format.h>

#include <algorithm>

#include "inspect/engines/declared_kind.h"

namespace octavo {

namespace {

std::string Spec(std::string_view section) {
  return "inference-schemes " + std::string(section);
}

void Refuse(Judgement* judgement, std::string text, std::string remedy, std::string_view section) {
  judgement->Add(Outcome::kRefused, std::move(text), std::move(remedy), Spec(section));
}
void FallBack(Judgement* judgement, std::string text, std::string_view section) {
  judgement->Add(Outcome::kFallback, std::move(text), "", Spec(section));
}

std::string TooOld(int min, const Machine& machine) {
  return fmt::format(
      "\"Quantization scheme is not supported for the current GPU. Min capability: {}. Current "
      "capability: {}.\"",
      min, machine.capability);
}

// Nothing is known of this scheme on CPUs.
void UnknownOnCpu(const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu())
    judgement->Add(Outcome::kUnknown, "no rule is known for SGLang on CPUs", "", Spec("6.3"));
}

bool WeightsAre(const Subject& s, ArgsTest test) {
  return test(*s.declared->weights);
}

Conditions WeightOnly(const Subject& s) {
  return {{"weights are integers", WeightsAre(s, IsInt)},
          {"weights are static, in groups or channels",
           WeightsAre(s, IsStatic) &&
               HasStrategy(*s.declared->weights, {Strategy::kChannel, Strategy::kGroup})},
          {"inputs are not quantized", !s.declared->input_activations}};
}
Conditions Nvfp4Both(const Subject& s) {
  return {InActivationFormat(s),
          {"weights are NVFP4", WeightsAre(s, IsNvfp4)},
          {"inputs are NVFP4", InputIs(s, IsNvfp4)}};
}

// Marlin, unpadded: the only kernel.
void RunWeightOnly(const Subject& subject, const Machine& machine, Judgement* judgement) {
  constexpr int kMinCapability = 80;
  constexpr int64_t kTileN = 64;
  constexpr int64_t kTileK = 128;
  const QuantizationArgs& weights = *subject.declared->weights;
  const int64_t group = weights.group_size.value_or(-1);
  if (FormatOf(*subject.declared) != "pack-quantized" ||
      (weights.num_bits != 4 && weights.num_bits != 8)) {
    return Refuse(judgement,
                  fmt::format("ImportError that names the 2:4 sparse method; the cause is {} bits "
                              "in format {}",
                              weights.num_bits, FormatOf(*subject.declared)),
                  "quantize to 4 or 8 bits with format: pack-quantized", "1.7; known-pains R40");
  }
  if (machine.is_cpu()) return UnknownOnCpu(machine, judgement);
  if (machine.capability < kMinCapability)
    return Refuse(judgement, TooOld(kMinCapability, machine), "use vLLM, which takes SM75", "1.7");
  if (group != -1 && group != 32 && group != 64 && group != 128)
    Refuse(judgement, fmt::format("Marlin takes groups of 32, 64, 128 or a channel, not {}", group),
           "quantize with such groups", "2.4");
  if (subject.total_n() % kTileN != 0 || subject.k % kTileK != 0)
    Refuse(judgement,
           fmt::format("Marlin, unpadded here, takes n in multiples of {} and k of {}, not {} x {}",
                       kTileN, kTileK, subject.total_n(), subject.k),
           "ignore these layers, or use vLLM, which pads", "2.4");
}

void RunNvfp4(const Subject&, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu()) return UnknownOnCpu(machine, judgement);
  if (machine.capability < 100)
    Refuse(judgement, "\"Current platform does not support w4a4 nvfp4 quantization.\"",
           "the newest releases fall back to Marlin (W4A16); or use vLLM", "1.7");
}

void RunFp8Weights(const Subject& subject, const Machine& machine, Judgement* judgement) {
  constexpr int kMinCapability = 80;
  if (machine.is_cpu()) return UnknownOnCpu(machine, judgement);
  if (machine.capability < kMinCapability)
    return Refuse(judgement, TooOld(kMinCapability, machine), "use vLLM, which takes SM75", "1.7");
  if (subject.declared->weights->strategy == Strategy::kBlock)
    Refuse(judgement, "weight-only FP8 takes scales of tensors and channels, not of blocks",
           "use an SM89 GPU or later, or vLLM", "1.7");
}

void RunFp8(const Subject& subject, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu()) return UnknownOnCpu(machine, judgement);
  if (machine.capability >= 89) return;
  RunFp8Weights(subject, machine, judgement);
  if (!judgement->findings.empty()) return;
  FallBack(judgement, "W8A16: the GPU has no FP8; activations stay 16 bits wide", "1.7");
}

void RunInt8(const Subject& subject, const Machine& machine, Judgement* judgement) {
  constexpr int kMinCapability = 80;
  if (machine.is_cpu()) {
    return Refuse(judgement, "compressed-tensors INT8 runs on GPUs only",
                  "--quantization w8a8_int8 on CPUs with AMX; or use vLLM or Octavo", "1.7");
  }
  if (machine.capability < kMinCapability)
    return Refuse(judgement, TooOld(kMinCapability, machine), "use vLLM, which takes SM75", "1.7");
  if (machine.capability >= 100)
    Refuse(judgement, "loads, then the first INT8 GEMM stops: not supported on this GPU",
           "quantize to FP8_DYNAMIC", "1.6; known-pains R15");
  if (subject.declared->weights->strategy == Strategy::kTensor)
    Refuse(judgement,
           "scales of tensors are treated as FP8 ones: \"size of scales_b is not matched\"",
           "quantize with scales of channels (W8A8)", "2.1.2, 5; known-pains R17");
  const QuantizationArgs& inputs = *subject.declared->input_activations;
  if (IsStatic(inputs))
    FallBack(judgement, "dynamic scales of tokens: the static ones in the file are never read",
             "1.7, 5");
  if (!inputs.symmetric)
    FallBack(judgement, "symmetric activations: zero points are accepted and ignored", "1.7, 5");
}

struct Row {
  std::string_view scheme;
  Conditions (*asks)(const Subject& subject);
  void (*run)(const Subject& subject, const Machine& machine, Judgement* judgement);
};

constexpr Row kRows[] = {
    {"packed int weights", WeightOnly, RunWeightOnly},
    {"NVFP4 weights and inputs", Nvfp4Both, RunNvfp4},
    {"FP8 weights and inputs", AskFp8, RunFp8},
    {"FP8 weights", AskFp8Weights, RunFp8Weights},
    {"int8 weights, static int8 inputs", AskStaticInt8, RunInt8},
    {"int8 weights, dynamic int8 inputs", AskDynamicInt8, RunInt8},
};

std::vector<TableRow> AskedRows(const Subject& subject, const Machine&) {
  std::vector<TableRow> rows;
  if (!IsLookedUp(subject)) return rows;
  for (const Row& row : kRows) {
    rows.push_back({std::string(row.scheme), Missing(row.asks(subject))});
    if (rows.back().missing.empty()) break;
  }
  return rows;
}

Judgement Judge(const Subject& subject, const Machine& machine) {
  Judgement judgement;
  if (subject.is_foreign) return judgement;
  if (subject.is_partly_ignored || subject.is_torn)
    Refuse(&judgement, "\"Found a different quantization schemes for [...]\"",
           "give fused layers one scheme, or ignore all of them", "1.2");
  if (!subject.declared->weights) {
    if (subject.kind == ModuleKind::kLinear && !subject.is_ignored)
      Refuse(&judgement,
             "\"Unable to find matching target for {layer} in the compressed-tensors "
             "config\"",
             "name the layer in ignore", "1.2");
    return judgement;
  }
  if (subject.kind == ModuleKind::kEmbedding) {
    Refuse(&judgement,
           "loads with warnings of \"not found in params_dict\", then answers nonsense: a "
           "quantized embedding is read as a float one",
           "ignore the embedding, or use vLLM", "1.4; known-pains R4");
    return judgement;
  }
  if (subject.kind == ModuleKind::kHead)
    judgement.Add(Outcome::kNative, "older releases build the head unquantized and answer \"!!!!\"",
                  "", "known-pains R3");
  for (const Row& row : kRows) {
    if (!AllHold(row.asks(subject))) continue;
    judgement.row = row.scheme;
    row.run(subject, machine, &judgement);
    return judgement;
  }
  Refuse(&judgement, "\"No compressed-tensors compatible scheme was found.\"",
         "use vLLM or Octavo, or another scheme", "1.7");
  return judgement;
}

std::vector<Finding> JudgeModel(const ModelFacts& facts, const Machine& machine) {
  Judgement judgement;
  if (facts.config == nullptr) return {};
  const QuantizationConfig& config = *facts.config;
  if (config.quant_method != "compressed-tensors") {
    judgement.Add(Outcome::kUnknown,
                  fmt::format("read by its back end for {}, of which nothing is known here",
                              config.quant_method),
                  "octavo convert makes compressed-tensors of it", Spec("1.1.1"));
    return judgement.findings;
  }
  if (config.kv_cache_scheme)
    judgement.Add(Outcome::kNative, "releases before August 2026 ignore kv_cache_scheme", "",
                  Spec("1.7, 4.2"));
  const auto fp8 =
      std::max_element(facts.losses.begin(), facts.losses.end(),
                       [](const FusedScaleLoss& a, const FusedScaleLoss& b) {
                         const auto key = [](const FusedScaleLoss& loss) {
                           return loss.kind == FusedScaleKind::kFp8Tensor ? loss.worst_error : -1;
                         };
                         return key(a) < key(b);
                       });
  if (fp8 != facts.losses.end() && fp8->kind == FusedScaleKind::kFp8Tensor &&
      machine.capability >= 89)
    judgement.Add(Outcome::kNative,
                  fmt::format("FP8 scales of fused layers become the largest of them: weights off "
                              "by up to {:.2g} % ({})",
                              100 * fp8->worst_error, fp8->worst_layer),
                  "quantize with scales of channels (FP8_DYNAMIC)", Spec("2.2, 5"));
  if (!config.transform_config.is_null() && config.transform_config.is_object() &&
      !config.transform_config.as_object().empty())
    judgement.Add(Outcome::kUnknown, "transform_config: whether SGLang applies it is not known", "",
                  Spec("1.1.8"));
  return judgement.findings;
}

}  // namespace

extern const Engine kSglang;
const Engine kSglang = {"SGLang", /*has_gpu_kernels=*/true, Judge, JudgeModel, AskedRows};

}  // namespace octavo
