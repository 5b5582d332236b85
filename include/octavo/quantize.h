// Quantize: a checkpoint becomes a smaller one, in compressed-tensors format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/dataset_options.h"
#include "octavo/environment.h"
#include "octavo/status.h"

namespace octavo {

// What the next block is calibrated on.
enum class Propagate : uint8_t {
  kFull,     // outputs of the quantized block as it will be served: its own kernels and activations
  kWeights,  // outputs of the block with quantized weights and float activations
  kNone,     // outputs of the original block
};

struct QuantizeOptions {
  std::filesystem::path model = {};
  std::filesystem::path out = {};
  std::filesystem::path calibration = {};  // empty: none (recipes that need no data)
  DatasetOptions dataset = {};
  Propagate propagate = Propagate::kFull;  // docs/numerics.md compares them
  int64_t max_shard_bytes = 20'000'000'000;
  int64_t memory_bytes = 0;  // what the run may take; 0: no limit given (see estimate.h)
  bool force = false;        // replace an existing output
  bool restart = false;      // drop what an interrupted run left, instead of going on with it
  bool dry_run = false;      // resolve, check, estimate and report, write nothing
};

struct LayerReport {
  std::string name;
  std::string method;
  std::string note;
  // Squared output error over the calibration tokens as a share of the output's energy, ||X (W -
  // Wq)^T||^2 / ||X W^T||^2; of the weights alone where no calibration data was needed.
  double error_to_nearest = 0;
  double error = 0;
};

// What calibration found for the keys and values that an attention module keeps, and for its
// queries where they are quantized too.
struct AttentionReport {
  std::string name;
  std::vector<float> key_scales;  // one, or one for each head
  std::vector<float> value_scales;
  std::vector<float> query_scales;  // none: queries stay floats
  // Squared error of rounding as a share of the energy, over the first calibration tokens.
  double key_error = 0;
  double value_error = 0;
  double query_error = 0;
};

// What a run was expected to take, before it began.
struct Estimate {
  double seconds = 0;
  int64_t memory_bytes = 0;
  int64_t output_bytes = 0;
  int64_t work_bytes = 0;  // on disk beside the output, until it is finished
  bool hidden_in_memory = true;
};

struct QuantizationReport {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t truncated_samples = 0;
  int64_t source_bytes = 0;
  int64_t dequantized_layers = 0;  // of a source that was FP8
  int64_t output_bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0;
  int64_t peak_rss_bytes = 0;
  std::vector<LayerReport> layers;
  std::vector<AttentionReport> attention;  // of modules whose cache is quantized
  std::optional<Estimate> estimate;        // of a dry run

  // Layers with a note: a fallback, a raised damping.
  int64_t layers_with_notes() const;
};

// Quantizes by a recipe in llm-compressor's YAML (docs/recipes.md), block by block. A run that was
// killed or cancelled leaves "<out>.unfinished"; the same call goes on with it.
Result<QuantizationReport> Quantize(const QuantizeOptions& options, std::string_view recipe,
                                    const Environment& environment = {});

}  // namespace octavo
