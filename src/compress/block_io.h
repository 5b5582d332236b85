// One block on its way through quantization: read as floats, packed as its schemes store it,
// written, and prepared to run.
#pragma once

#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/block_work.h"
#include "compress/plan.h"
#include "io/checkpoint_writer.h"
#include "octavo/quantize.h"
#include "runtime/load.h"

namespace octavo {

// The float32 weights of block `index`. InvalidArgument names a tensor that holds NaN or Inf.
Result<BlockWork> ReadBlockWork(const LoadedModel& source, const QuantizationPlan& plan,
                                int64_t index);
// The same of the output head; a tied one's weight is the embedding's.
Result<BlockWork> ReadHeadWork(const LoadedModel& source, const QuantizationPlan& plan);
// The same of the embedding, which shares no input with anything.
Result<BlockWork> ReadEmbeddingWork(const LoadedModel& source, const QuantizationPlan& plan);

// The work's group that a tap on the source's graph speaks of; null for one that is not in this
// block.
GroupWork* FindGroup(BlockWork* work, const LinearGroup& group);

// A block in the form in which it is stored.
struct PackedBlock {
  struct Group {
    std::vector<LayerTensors> tensors;  // of each layer, without biases
    std::vector<LayerViews> views;      // the same, and the source's biases
  };
  std::vector<Group> groups;
  std::vector<std::pair<std::string, Tensor>> norms;  // name of the weight, stored dtype
  // Norms that nothing changes (of the heads of q and k), for the block that runs; the output has
  // them with the tensors that are copied.
  std::vector<std::pair<std::string, TensorView>> copied_norms;
  std::vector<const LinearLayer*> layers;  // flat, in the order of groups
  std::vector<Tensor>
      dequantized;  // float weights of a block prepared with PrepareDequantizedBlock
};

// Packs every layer and appends to the report what each lost. Internal when a layer was to be
// quantized, but no modifier did it.
Result<PackedBlock> PackBlock(const BlockWork& work, const LoadedModel& source,
                              QuantizationReport* report, const Context& context);
// A line for the log: what each layer of the block lost, rounded to nearest and as it was done.
void LogBlock(const BlockWork& work, const QuantizationReport& report, Logger& log);
Status WritePackedBlock(const PackedBlock& packed, CheckpointWriter* writer);

// Makes the packed block runnable in the target's graph, by the kernels that will serve it / drops
// it again.
Status PreparePackedBlock(const PackedBlock& packed, Model* target, int64_t index,
                          const Context& context);
// The same with the quantized weights as float32 and float activations.
Status PrepareDequantizedBlock(PackedBlock* packed, Model* target, int64_t index,
                               const Context& context);
// The same with the weights as the modifiers left them, not quantized. `work` outlives what runs.
Status PrepareFloatBlock(const BlockWork& work, const PackedBlock& packed, Model* target,
                         const Context& context);
void ReleasePackedBlock(Model* target, int64_t index);

}  // namespace octavo
