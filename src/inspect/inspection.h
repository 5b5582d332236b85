// Inspection: the modules of a checkpoint, stored or planned, with what is declared for each and
// the bytes it takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "inspect/diagnosis.h"
#include "io/checkpoint.h"
#include "io/checkpoint_writer.h"
#include "model/graph.h"
#include "quant/config.h"
#include "runtime/online.h"

namespace octavo {

enum class ModuleKind : uint8_t { kLinear, kHead, kEmbedding, kNorm, kOnline, kUnknown };

struct InspectedModule {
  ModuleKind kind = ModuleKind::kLinear;
  std::string name;                    // "model.layers.0.mlp.down_proj"
  std::string role;                    // without the block: "mlp.down_proj"
  const LinearLayer* layer = nullptr;  // null for norms and what is no layer
  const Scheme* scheme = nullptr;      // null where there is no layer, or no scheme for it
  Shape shape;                         // [n, k] of layers, [n] of norms; empty for others
  int64_t bytes = 0;                   // of all its tensors
  int64_t bias_bytes = 0;              // of those, the bias
  double bits_per_weight() const;      // of layers, all tensors but the bias; 0 for others
};

// What is needed to say everything below; nothing is loaded. Modules point into `model`.
struct Inspection {
  std::unique_ptr<Model> model;
  std::optional<QuantizationConfig> config;
  std::vector<PlannedTensor> tensors;      // sorted by name
  std::unique_ptr<Checkpoint> checkpoint;  // null where the tensors are only planned
  TensorNameSet online_tensors;  // read with the model, not with the modules they are named after
  std::vector<InspectedModule> modules;  // in the order of the model
  int64_t header_bytes = 0;              // of the files, what is no tensor's
  std::vector<Problem> problems;

  int64_t total_bytes() const;  // of the files
  // The module of that name; NotFound with the nearest.
  Result<const InspectedModule*> Find(std::string_view name) const;
};

// "model.norm" of "model.norm.weight"; "(no module)" of a name of one word.
std::string ModuleOfTensor(std::string_view tensor);

// A checkpoint folder, of which headers and small scales are read. An error only where nothing can
// be said at all: no weights, a config that cannot be read, an unknown architecture; everything
// else is among the problems.
Result<Inspection> InspectCheckpoint(const std::filesystem::path& folder, const Context& context);

// What a quantization will write; of its tensors, `online_tensors` are for transforms.
Inspection InspectPlan(Model model, QuantizationConfig config, std::vector<PlannedTensor> tensors,
                       TensorNameSet online_tensors);

}  // namespace octavo
