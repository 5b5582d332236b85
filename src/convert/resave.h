// Quantized checkpoints of other tools (GPTQ, AWQ, FP8), re-saved in compressed-tensors format.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/context.h"
#include "base/status.h"

namespace octavo {

struct ResaveOptions {
  bool force = false;  // replace an existing output
  int64_t max_shard_bytes = 20'000'000'000;
  // Write weight_g_idx where the columns of a group are scattered (desc_act). Off: Unsupported, as
  // compressed-tensors from 0.19 on, and vLLM with it, refuse such a checkpoint.
  bool keep_group_order = false;
};

// Codes, scales and zero points are kept to the bit: nothing is quantized anew. Each layer is
// re-saved twice, first to check and to plan, so that what is refused is refused before anything is
// written. Other tensors and files are copied, config.json gets a quantization_config. The result
// is reopened and each layer compared with the source before it is moved to `out`; after an error
// nothing is left. InvalidArgument when the checkpoint is not quantized, or is in the format
// already. Memory: one layer at a time.
Status ResaveCheckpoint(const std::filesystem::path& folder, const std::filesystem::path& out,
                        const ResaveOptions& options, const Context& context);

}  // namespace octavo
