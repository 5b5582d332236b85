// vLLM: its decision table for linear layers, and what its kernels refuse behind it (main, late
// summer 2026). Rows are those of inference-schemes 1.3.
#include <fmt/format.h>

#include <algorithm>

#include "inspect/engines/declared_kind.h"

namespace octavo {

namespace {

constexpr std::string_view kSpec = "inference-schemes ";

std::string Spec(std::string_view section) {
  return std::string(kSpec) + std::string(section);
}

void Refuse(Judgement* judgement, std::string text, std::string remedy, std::string_view section) {
  judgement->Add(Outcome::kRefused, std::move(text), std::move(remedy), Spec(section));
}
void FallBack(Judgement* judgement, std::string text, std::string remedy,
              std::string_view section) {
  judgement->Add(Outcome::kFallback, std::move(text), std::move(remedy), Spec(section));
}
void Remark(Judgement* judgement, std::string text, std::string remedy, std::string_view section) {
  judgement->Add(Outcome::kNative, std::move(text), std::move(remedy), Spec(section));
}

// W and A of the layer.
const QuantizationArgs& W(const Subject& subject) {
  return *subject.declared->weights;
}
const std::optional<QuantizationArgs>& A(const Subject& subject) {
  return subject.declared->input_activations;
}

std::string NoKernel(std::string_view family) {
  return fmt::format("\"Failed to find a kernel that can implement the {} linear layer.\"", family);
}

bool IsIntGroupOrChannel(const Subject& subject) {
  return IsStatic(W(subject)) && HasStrategy(W(subject), {Strategy::kChannel, Strategy::kGroup});
}

// ---- which row ---------------------------------------------------------------------------------

bool IsSymmetric(const QuantizationArgs& args) {
  return args.symmetric;
}
bool IsInt8Static(const QuantizationArgs& args) {
  return IsInt(args) && IsEightBitStaticInput(args);
}
bool IsDynamicIntInput(const QuantizationArgs& args) {
  return IsInt(args) && args.symmetric && !IsStatic(args) &&
         HasStrategy(args, {Strategy::kToken, Strategy::kGroup}) &&
         (args.num_bits == 8 || args.num_bits == 4);
}

Condition WeightsOf(const Subject& s, std::string_view text, ArgsTest test) {
  return {text, test(W(s))};
}
Condition NoInput(const Subject& s) {
  return {"inputs are not quantized", !A(s)};
}
Condition GroupsOrChannels(const Subject& s) {
  return {"weights are static, in groups or channels", IsIntGroupOrChannel(s)};
}
Condition Packed(const Subject& s) {
  return {"the format is pack-quantized", FormatOf(*s.declared) == "pack-quantized"};
}

Conditions Nvfp4A16Row(const Subject& s, const Machine&) {
  return {WeightsOf(s, "weights are NVFP4", IsNvfp4), NoInput(s)};
}
Conditions Nvfp4Row(const Subject& s, const Machine&) {
  return {WeightsOf(s, "weights are NVFP4", IsNvfp4), {"inputs are NVFP4", InputIs(s, IsNvfp4)}};
}
Conditions Nvfp4TornRow(const Subject& s, const Machine&) {
  return {WeightsOf(s, "weights are NVFP4", IsNvfp4)};
}
Conditions Mxfp4Row(const Subject& s, const Machine&) {
  return {WeightsOf(s, "weights are MXFP4", IsMxfp4)};
}
Conditions Mxfp8Row(const Subject& s, const Machine&) {
  return {WeightsOf(s, "weights are MXFP8", IsMxfp8)};
}
// Types are not tested: an integer input is taken for a float one.
Conditions HopperRow(const Subject& s, const Machine& machine) {
  return {
      {"the GPU is Hopper (SM90)", machine.capability == 90},
      {"weights have 4 bits in groups, symmetric",
       W(s).num_bits == 4 && W(s).strategy == Strategy::kGroup && W(s).symmetric && IsStatic(W(s))},
      {"inputs have 8 bits and dynamic scales of tokens, symmetric",
       InputIs(s, IsEightBitTokenInput) && InputIs(s, IsSymmetric)}};
}
Conditions InputOutputRow(const Subject& s, const Machine&) {
  const std::string format = FormatOf(*s.declared);
  const auto& output = s.declared->output_activations;
  return {WeightsOf(s, "weights are integers", IsInt),
          GroupsOrChannels(s),
          {"the format is pack-quantized or int-quantized",
           format == "pack-quantized" || format == "int-quantized"},
          {"inputs are int8 with a static scale", InputIs(s, IsInt8Static)},
          {"outputs are int8 with a static scale", output && IsInt8Static(*output)}};
}
Conditions PackedIntRow(const Subject& s, const Machine&) {
  return {WeightsOf(s, "weights are integers", IsInt),
          GroupsOrChannels(s),
          Packed(s),
          {"inputs are int8 or int4 with dynamic scales of tokens or groups, symmetric",
           InputIs(s, IsDynamicIntInput)}};
}
Conditions WeightOnlyRow(const Subject& s, const Machine&) {
  return {GroupsOrChannels(s), NoInput(s), Packed(s)};
}
Conditions Fp8Row(const Subject& s, const Machine&) {
  return AskFp8(s);
}
Conditions Fp8A16Row(const Subject& s, const Machine&) {
  return AskFp8Weights(s);
}
Conditions StaticInt8Row(const Subject& s, const Machine&) {
  return AskStaticInt8(s);
}
Conditions DynamicInt8Row(const Subject& s, const Machine&) {
  return AskDynamicInt8(s);
}
Conditions W4A8Row(const Subject& s, const Machine&) {
  return {InActivationFormat(s),
          {"weights have 4 bits, symmetric", W(s).num_bits == 4 && W(s).symmetric},
          GroupsOrChannels(s),
          {"inputs have 8 bits and dynamic scales of tokens", InputIs(s, IsEightBitTokenInput)}};
}

// ---- what becomes of it ------------------------------------------------------------------------

void RunNvfp4A16(const Subject&, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu())
    Refuse(judgement, NoKernel("NVFP4"), "quantize to W4A16 or W8A8 for CPUs", "6.3");
}

void RunNvfp4(const Subject& subject, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu()) return RunNvfp4A16(subject, machine, judgement);
  if (machine.capability < 100)
    FallBack(judgement, "W4A16: weights by Marlin, activations stay 16 bits wide", "", "1.6, 2.6");
}

void RefuseNvfp4(const Subject&, const Machine&, Judgement* judgement) {
  Refuse(judgement,
         "\"For NVFP4 weights, input quantization must also be NVFP4 format, None for NVFP4A16\"",
         "declare NVFP4 inputs, or none", "1.3 row 1c");
}

void RunMxfp4(const Subject& subject, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu())
    return Refuse(judgement, NoKernel("MXFP4"), "quantize to W4A16 for CPUs", "6.3");
  if (machine.capability < 100 && A(subject))
    FallBack(judgement, "W4A16: weights by Marlin, activations stay 16 bits wide", "", "1.6, 2.7");
  if (machine.capability >= 100 && !A(subject))
    FallBack(judgement,
             "W4A4, though no input quantization is declared: the row looks at weights alone", "",
             "2.7; known-pains R8");
}

void RunMxfp8(const Subject& subject, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu())
    return Refuse(judgement, NoKernel("MXFP8"), "quantize to W8A8 for CPUs", "6.3");
  if (machine.capability < 100 && A(subject))
    FallBack(judgement, "W8A16: weights by Marlin, activations stay 16 bits wide", "", "1.6");
  if (machine.capability >= 100 && !A(subject))
    FallBack(judgement,
             "W8A8, though no input quantization is declared: the row looks at weights alone", "",
             "1.3 row 3");
}

void RunHopper(const Subject& subject, const Machine&, Judgement* judgement) {
  if (W(subject).group_size != 128)
    Refuse(judgement, "\"W4A8 kernels require group quantization with group size 128\"",
           "quantize with groups of 128, or without input quantization (W4A16)", "2.8");
  if (subject.total_n() % 128 != 0 || subject.k % 128 != 0)
    Refuse(judgement,
           fmt::format("the kernel takes n and k that are multiples of 128, not {} x {}",
                       subject.total_n(), subject.k),
           "ignore these layers, or quantize to W4A16", "2.8");
  if (FormatOf(*subject.declared) != "pack-quantized")
    Refuse(judgement, "the row reads weight_packed, and the file has codes of a byte",
           "quantize with format: pack-quantized", "2.8");
  if (IsInt(*A(subject)))
    FallBack(judgement, "activations become FP8, not int8 as declared: the row tests no types", "",
             "1.3 row 4; known-pains R34");
}

// Kernels for integer weights beside float activations.
void RunWeightOnly(const Subject& subject, const Machine& machine, Judgement* judgement) {
  const QuantizationArgs& weights = W(subject);
  const int64_t group = weights.group_size.value_or(-1);
  if (weights.num_bits < 2 || weights.num_bits > 8 ||
      (!weights.symmetric && weights.num_bits != 4 && weights.num_bits != 8)) {
    return Refuse(judgement,
                  fmt::format("\"Unsupported num_bits = {}\" ({})", weights.num_bits,
                              weights.symmetric ? "2 to 8" : "asymmetric: 4 or 8"),
                  "quantize symmetrically, or to 4 or 8 bits", "1.3 row 7");
  }
  if (weights.actorder == ActOrder::kGroup)
    Refuse(judgement, "\"group/dynamic activation ordering ... no longer supported\"",
           "quantize with actorder: static (the default)", "1.1.4; known-pains R24");
  if (!machine.is_cpu()) {
    if (weights.num_bits != 4 && weights.num_bits != 8) {
      FallBack(
          judgement,
          fmt::format("a kernel behind Marlin, which takes 4 and 8 bits, not {}", weights.num_bits),
          "", "1.6, 2.4");
    } else if (group != -1 && group != 32 && group != 64 && group != 128) {
      FallBack(judgement,
               fmt::format("a kernel behind Marlin, which takes groups of 32, 64, 128 or a "
                           "channel, not {}",
                           group),
               "", "1.6, 2.4");
    }
    return;
  }
  if (weights.num_bits != 4)
    return Refuse(judgement, NoKernel("WNA16"), "quantize to 4 bits (W4A16) or W8A8 for CPUs",
                  "2.4, 6.3");
  if (machine.cpu == CpuLevel::kAvx2)
    return Refuse(judgement,
                  "loads, then the first forward stops: \"'_OpNamespace' '_C' object has no "
                  "attribute 'cpu_gemm_wna16'\"",
                  "use a CPU with AVX-512, or Octavo", "6.3; known-pains R16");
  if (subject.total_n() % 32 != 0 || subject.k % 32 != 0 || (group != -1 && group % 2 != 0))
    Refuse(judgement,
           fmt::format("{} (n and k must be multiples of 32, groups even; here {} x {})",
                       NoKernel("WNA16"), subject.total_n(), subject.k),
           "ignore these layers", "2.4");
  if (machine.cpu == CpuLevel::kAmx && subject.declared->weights->actorder != ActOrder::kGroup)
    FallBack(judgement, "W4A8: activations are rounded to 8 bits, by default",
             "VLLM_CPU_INT4_W4A8=0", "2.4, 6.4");
}

void RunPackedInt(const Subject&, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu()) Refuse(judgement, NoKernel("WNA16"), "quantize to W8A8 for CPUs", "6.3");
}

// 128 x 128 blocks may be cut short only at the end of the last layer of a group.
void CheckBlocks(const Subject& subject, Judgement* judgement) {
  const auto [rows, columns] = *W(subject).block_structure;
  if (subject.k % columns != 0)
    Refuse(judgement,
           fmt::format("input size {} is not divisible by weight quantization block_k = {}",
                       subject.k, columns),
           "ignore these layers, or use FP8_DYNAMIC", "2.2");
  for (size_t i = 0; i + 1 < subject.n.size(); ++i) {
    if (subject.n[i] % rows == 0) continue;
    return Refuse(judgement,
                  fmt::format("\"Weight output_partition_size = {} is not divisible by weight "
                              "quantization block_n = {}\"",
                              subject.n[i], rows),
                  "ignore these layers, or use FP8_DYNAMIC", "2.2");
  }
}

void RunFp8A16(const Subject& subject, const Machine& machine, Judgement* judgement) {
  const bool has_blocks = W(subject).strategy == Strategy::kBlock;
  if (has_blocks) CheckBlocks(subject, judgement);
  if (A(subject))
    FallBack(judgement, "W8A16: the declared input quantization is not of FP8 and is left out", "",
             "1.3 row 9");
  if (!machine.is_cpu()) return;
  if (W(subject).strategy == Strategy::kTensor && machine.cpu == CpuLevel::kAmx)
    return Remark(judgement, "only the newest releases have this kernel", "", "6.3");
  Refuse(judgement, NoKernel("ScaledMM"), "declare FP8 inputs (FP8_DYNAMIC), or use Octavo", "6.3");
}

void RunFp8(const Subject& subject, const Machine& machine, Judgement* judgement) {
  const bool has_blocks = W(subject).strategy == Strategy::kBlock;
  if (has_blocks) CheckBlocks(subject, judgement);
  if (machine.is_cpu()) {
    if (!has_blocks) return FallBack(judgement, "torch's scaled matmul", "", "1.6, 6.3");
    if (machine.cpu != CpuLevel::kAmx)
      return Refuse(judgement, NoKernel("ScaledMM"), "use FP8_DYNAMIC or W8A8, or Octavo", "6.3");
    return FallBack(judgement, "W8A16 by an AMX kernel: activations stay 16 bits wide", "",
                    "1.6, 6.3");
  }
  if (machine.capability < 89)
    return FallBack(judgement,
                    "W8A16 by Marlin: the GPU has no FP8; the scales of activations are ignored",
                    "", "1.3 row 8, 1.6");
  if (!has_blocks && !IsStatic(*A(subject)) && A(subject)->strategy == Strategy::kTensor)
    Remark(judgement, "dynamic scales of the whole tensor become scales of each token", "", "1.3");
}

void RunInt8(const Subject& subject, const Machine& machine, Judgement* judgement) {
  if (machine.is_cpu()) {
    if (machine.cpu == CpuLevel::kAvx2)
      Remark(judgement, "releases before mid-2026 lack the kernel and stop at the first forward",
             "", "6.3; known-pains R16");
    return;
  }
  if (machine.capability >= 100)
    return Refuse(judgement,
                  fmt::format("loads, then the first GEMM stops: \"Int8 not supported on SM{}. Use "
                              "FP8 quantization instead, or run on older arch (SM < 100).\"",
                              machine.capability),
                  "quantize to FP8_DYNAMIC; or name Cutlass's class in VLLM_DISABLED_KERNELS, and "
                  "Triton runs it",
                  "1.6; known-pains R15");
  if (subject.total_n() % 16 != 0 || subject.k % 16 != 0)
    Refuse(judgement,
           fmt::format("CUDA's INT8 GEMM takes n and k that are multiples of 16, not {} x {}",
                       subject.total_n(), subject.k),
           "ignore these layers", "1.6");
}

void RunW4A8(const Subject& subject, const Machine&, Judgement* judgement) {
  Refuse(judgement, NoKernel("WNA16"),
         "only Arm CPUs have one: quantize to W4A16 or W8A8, or use Octavo", "2.9, 6.3");
  if (IsFloat(*A(subject)))
    Remark(judgement, "the row takes the FP8 inputs for int8: it tests no types", "", "1.8");
}

struct Row {
  std::string_view number;
  std::string_view scheme;
  int min_capability;
  Conditions (*asks)(const Subject& subject, const Machine& machine);
  void (*run)(const Subject& subject, const Machine& machine, Judgement* judgement);
};

constexpr Row kRows[] = {
    {"1", "NVFP4 weights", 75, Nvfp4A16Row, RunNvfp4A16},
    {"1b", "NVFP4 weights and inputs", 75, Nvfp4Row, RunNvfp4},
    {"1c", "NVFP4 weights, other inputs", 0, Nvfp4TornRow, RefuseNvfp4},
    {"2", "MXFP4", 80, Mxfp4Row, RunMxfp4},
    {"3", "MXFP8", 75, Mxfp8Row, RunMxfp8},
    {"4", "int4 weights, FP8 inputs", 90, HopperRow, RunHopper},
    {"5", "int weights, int8 inputs and outputs", 70, InputOutputRow, RunWeightOnly},
    {"6", "packed int weights, int inputs", 75, PackedIntRow, RunPackedInt},
    {"7", "packed int weights", 75, WeightOnlyRow, RunWeightOnly},
    {"8", "FP8 weights and inputs", 75, Fp8Row, RunFp8},
    {"9", "FP8 weights", 75, Fp8A16Row, RunFp8A16},
    {"10", "int8 weights, static int8 inputs", 75, StaticInt8Row, RunInt8},
    {"11", "int8 weights, dynamic int8 inputs", 75, DynamicInt8Row, RunInt8},
    {"12", "int4 weights, int8 inputs", 1, W4A8Row, RunW4A8},
};

std::string NameOf(const Row& row) {
  return fmt::format("row {}: {}", row.number, row.scheme);
}

std::vector<TableRow> AskedRows(const Subject& subject, const Machine& machine) {
  std::vector<TableRow> rows;
  if (!IsLookedUp(subject)) return rows;
  for (const Row& row : kRows) {
    rows.push_back({NameOf(row), Missing(row.asks(subject, machine))});
    if (rows.back().missing.empty()) break;
  }
  return rows;
}

void JudgeEmbedding(const Subject& subject, Judgement* judgement) {
  const QuantizationArgs& weights = W(subject);
  if (IsInt(weights) && IsIntGroupOrChannel(subject) && !A(subject)) return;
  Refuse(judgement,
         "\"compressed-tensors embeddings only support weight-only INT group/channel (WNA16)\"",
         "ignore the embedding", "1.4");
}

Judgement Judge(const Subject& subject, const Machine& machine) {
  Judgement judgement;
  if (subject.is_foreign) return judgement;
  if (subject.is_partly_ignored)
    Refuse(&judgement,
           "\"Found a different quantization schemes for [...]. vLLM requires all to use the same "
           "scheme.\"",
           "give fused layers one scheme, or ignore all of them", "1.2");
  if (subject.is_torn)
    Refuse(&judgement,
           "fused layers are declared differently, and all are read as the first one is",
           "give fused layers one scheme, or ignore all of them", "1.2");
  if (!subject.declared->weights) return judgement;
  if (subject.kind == ModuleKind::kEmbedding) {
    JudgeEmbedding(subject, &judgement);
    return judgement;
  }
  if (IsInt(W(subject)) && !A(subject) && IsActivationFormat(FormatOf(*subject.declared))) {
    Refuse(&judgement,
           fmt::format("an assertion without text: integer weights alone in format {}",
                       FormatOf(*subject.declared)),
           "quantize with format: pack-quantized", "1.1.5");
    return judgement;
  }
  for (const Row& row : kRows) {
    if (!AllHold(row.asks(subject, machine))) continue;
    judgement.row = NameOf(row);
    if (!machine.is_cpu() && machine.capability < row.min_capability)
      Refuse(&judgement,
             fmt::format("\"Quantization scheme is not supported for the current GPU. Min "
                         "capability: {}. Current capability: {}.\"",
                         row.min_capability, machine.capability),
             "", "1.3");
    else
      row.run(subject, machine, &judgement);
    return judgement;
  }
  Refuse(&judgement, "\"No compressed-tensors compatible scheme was found for layer_name=...\"",
         "quantize to a scheme that has a row, or use Octavo", "1.3 row 13");
  return judgement;
}

// ---- the model as a whole ----------------------------------------------------------------------

void JudgeCache(const QuantizationArgs& cache, const Machine& machine, Judgement* judgement) {
  if (!IsFloat(cache) || cache.num_bits != 8 || !cache.symmetric ||
      !HasStrategy(cache, {Strategy::kTensor, Strategy::kAttnHead})) {
    return Refuse(judgement, "NotImplementedError: kv_cache_scheme is not symmetric FP8",
                  "declare an FP8 cache, or none", "4.1");
  }
  if (machine.is_cpu())
    Refuse(judgement, "NotImplementedError: \"FP8 KV cache is unsupported in CPU_ATTN\"",
           "--kv-cache-dtype bfloat16", "4.2");
}

void JudgeLosses(const ModelFacts& facts, const Machine& machine, Judgement* judgement) {
  const FusedScaleLoss* worst[2] = {};
  for (const FusedScaleLoss& loss : facts.losses) {
    auto& one = worst[static_cast<size_t>(loss.kind)];
    if (one == nullptr || loss.worst_error > one->worst_error) one = &loss;
  }
  const bool keeps_fp8 = machine.capability != 0 && machine.capability < 89;  // W8A16: exact
  if (worst[0] != nullptr && !keeps_fp8)
    Remark(judgement,
           fmt::format("FP8 scales of fused layers become the largest of them: weights off by up "
                       "to {:.2g} % ({})",
                       100 * worst[0]->worst_error, worst[0]->worst_layer),
           "quantize with scales of channels (FP8_DYNAMIC)", "2.2");
  if (worst[1] != nullptr)
    Remark(judgement,
           fmt::format("\"...likely result in reduced accuracy\": one global scale for fused "
                       "layers, weights off by up to {:.2g} % ({})",
                       100 * worst[1]->worst_error, worst[1]->worst_layer),
           "quantize with global scales that fused layers share (Octavo does)", "2.6");
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
  if (config.kv_cache_scheme) JudgeCache(*config.kv_cache_scheme, machine, &judgement);
  JudgeLosses(facts, machine, &judgement);
  if (!facts.torn_inputs.empty())
    Remark(&judgement,
           fmt::format("of the input scales of fused layers one is used for all: the last loaded "
                       "(INT8) or the largest (FP8); they differ in {} groups ({} ...)",
                       facts.torn_inputs.size(), facts.torn_inputs.front()),
           "quantize with input scales that fused layers share", "2.1.3, 2.2, 5");
  if (!facts.other_targets.empty())
    Remark(&judgement,
           fmt::format("targets are tried in the order of the file: {} layers get another group "
                       "than the library gives them ({} ...)",
                       facts.other_targets.size(), facts.other_targets.front()),
           "name layers in one group only", "1.2, 1.8");
  return judgement.findings;
}

}  // namespace

extern const Engine kVllm;
const Engine kVllm = {"vLLM", /*has_gpu_kernels=*/true, Judge, JudgeModel, AskedRows};

}  // namespace octavo
