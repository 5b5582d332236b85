// Engine: which checkpoints a serving program runs, on which machine, and how; as typed rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/fused_scales.h"
#include "inspect/inspection.h"
#include "quant/args.h"

namespace octavo {

// Instructions that the engines' CPU kernels ask for; each has those before it.
enum class CpuLevel : uint8_t { kAvx2, kAvx512, kAmx };

// A generation of machines.
struct Machine {
  std::string_view name;  // "Hopper (SM90)"
  int capability = 0;     // CUDA compute capability x 10; 0: a CPU
  CpuLevel cpu = CpuLevel::kAvx2;

  bool is_cpu() const { return capability == 0; }
};
std::span<const Machine> AllMachines();

// Linear layers that run as one, or an embedding.
struct Subject {
  ModuleKind kind = ModuleKind::kLinear;
  std::string name;                              // of the first layer
  const QuantizationScheme* declared = nullptr;  // of the first layer; its format is resolved
  std::vector<int64_t> n = {};                   // of each layer
  int64_t k = 0;
  bool splits_k = false;           // o_proj, down_proj: engines cut these along k
  bool is_ignored = false;         // named by `ignore`
  bool is_torn = false;            // another layer of the group is declared otherwise
  bool is_partly_ignored = false;  // or is not quantized, where this one is; or the other way round
  bool is_foreign = false;         // the checkpoint is another tool's, read by other back ends

  int64_t total_n() const;
  bool is_fused() const { return n.size() > 1; }
};

// What concerns the model as a whole.
struct ModelFacts {
  const QuantizationConfig* config = nullptr;  // null: not quantized
  std::vector<FusedScaleLoss> losses;
  // Layers for which vLLM's order of targets (the file's) would choose another group.
  std::vector<std::string> other_targets;
  // The first layer of each group whose layers have static input scales or zero points of their
  // own.
  std::vector<std::string> torn_inputs;
};

enum class Outcome : uint8_t { kNative, kUnknown, kFallback, kRefused };  // better first
std::string_view OutcomeName(Outcome outcome);

// One thing to know: what happens, what to do, and where that is written.
struct Finding {
  Outcome outcome = Outcome::kNative;
  std::string text;        // refused: the engine's message; fallback: what it runs; else a remark
  std::string remedy;      // may be empty
  std::string source;      // "inference-schemes 1.6"
  std::string where = {};  // the first layer it was found at; empty: of the model
};

// What an engine does with one subject.
struct Judgement {
  std::string row;  // of its decision table: "row 8: W8A8-FP8"; empty: none
  std::vector<Finding> findings;

  void Add(Outcome outcome, std::string text, std::string remedy, std::string source) {
    findings.push_back({outcome, std::move(text), std::move(remedy), std::move(source)});
  }
};

// One row of an engine's decision table, and what it asks for that a layer does not have; nothing:
// it takes the layer.
struct TableRow {
  std::string name;                  // "row 8: FP8 weights and inputs"
  std::vector<std::string> missing;  // "inputs are FP8"

  friend bool operator==(const TableRow&, const TableRow&) = default;
};

// One line of engines.inc. Silence is consent: without findings, what is declared runs natively.
struct Engine {
  std::string_view name;  // "vLLM"
  bool has_gpu_kernels = true;
  Judgement (*judge)(const Subject& subject, const Machine& machine);
  std::vector<Finding> (*judge_model)(const ModelFacts& facts, const Machine& machine);
  // The rows down to the one that takes the subject, or all; none where the table is not asked: for
  // embeddings, and for what is not quantized. Null where the table is the list of schemes.
  std::vector<TableRow> (*rows)(const Subject& subject, const Machine& machine) = nullptr;
};
// Every engine, in the order of engines.inc.
std::span<const Engine* const> AllEngines();

// The distinct subjects of a model: those that differ in more than their name.
std::vector<Subject> SubjectsOf(const Inspection& inspection);
// The one that a layer of the inspection's model belongs to.
Subject SubjectWith(const Inspection& inspection, const LinearLayer& layer);
ModelFacts FactsOf(const Inspection& inspection, std::vector<FusedScaleLoss> losses);

// All findings about a checkpoint on one machine, each once, worst first.
struct Verdict {
  const Engine* engine = nullptr;
  const Machine* machine = nullptr;
  Outcome outcome = Outcome::kNative;
  std::vector<std::string> rows = {};  // of the engine's decision table
  std::vector<Finding> findings = {};
};
// Not for GPUs where the engine has no kernels for them.
Verdict JudgeAll(const Engine& engine, const Machine& machine, std::span<const Subject> subjects,
                 const ModelFacts& facts);

}  // namespace octavo
