// Loading: a checkpoint folder becomes a model that can run, block by block.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/context.h"
#include "base/status.h"
#include "io/checkpoint.h"
#include "model/graph.h"
#include "quant/config.h"
#include "runtime/online.h"

namespace octavo {

struct LoadOptions {
  PrepareOptions prepare;
  bool load_blocks =
      true;  // off: the caller loads and releases blocks itself (quantization in bounded memory)
  // The layers of an FP8 checkpoint as weights in the model's dtype, dequantized as they are read,
  // under a model that is not quantized. Unsupported for other kinds: what is lost with few bits is
  // not to be quantized again.
  bool dequantize = false;
};

// A checkpoint with its graph; owns both. Layers may read the mapped file, so it lives as long as
// they.
class LoadedModel {
 public:
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Model& model() const { return model_; }
  const std::optional<QuantizationConfig>& quantization() const { return quantization_; }
  // Layers that LoadOptions::dequantize changed.
  int64_t dequantized_layers() const { return dequantized_layers_; }

  // Reads, checks and prepares one block / drops it again.
  Status LoadBlock(int64_t index, const Context& context);
  void ReleaseBlock(int64_t index);

  // The embedding, the final norm and the head, likewise. They are there once the model is loaded,
  // until they are dropped; the final norm stays.
  Status LoadEnds(const Context& context);
  Status LoadEmbedding(const Context& context);
  void ReleaseEnds();

  // For quantization: the graph's blocks, to be prepared from other tensors; and the checkpoint,
  // whose tensors are replaced.
  Model& mutable_model() { return model_; }
  Checkpoint& mutable_checkpoint() { return checkpoint_; }
  // To be called then: `online` are tensors of transforms. Drops the ends.
  Status TensorsWereReplaced(const TensorNameSet& online);

  // What a linear layer of the graph has in the checkpoint, by suffix, without the matrices of its
  // transforms.
  LayerViews TensorsOf(const LinearLayer& layer) const;
  // The layer's weight as stored, F32 [n, k]: before transforms, that is.
  Result<Tensor> Weight(const LinearLayer& layer) const;

  // Tensors of the checkpoint that no module of the graph has, without those the family is known to
  // carry.
  std::vector<std::string> UnusedTensors() const;

 private:
  friend Result<std::unique_ptr<LoadedModel>> LoadModel(const std::filesystem::path&,
                                                        const LoadOptions&, const Context&);
  Status LoadFinalNorm();
  Status DequantizeLayers();
  Status LoadGroup(LinearGroup* group, const Context& context);

  Checkpoint checkpoint_;
  std::optional<QuantizationConfig> quantization_;
  Model model_;
  TensorNameSet online_tensors_;  // what LoadOnline took
  PrepareOptions prepare_;
  int64_t dequantized_layers_ = 0;
};

// Opens the checkpoint, resolves each linear layer to its scheme, checks every tensor against what
// that scheme declares, and prepares the kernels. Errors name the layer and file; a tensor that
// belongs to a known module but that nothing would use is an error, one of an unknown module a
// warning.
Result<std::unique_ptr<LoadedModel>> LoadModel(const std::filesystem::path& folder,
                                               const LoadOptions& options, const Context& context);

// Stacks consecutive layers of equal scheme and prepares each stack: fills group->parts. tensors[i]
// belong to group->layers[i] and are checked.
Status PrepareGroup(LinearGroup* group, std::span<const LayerViews> tensors,
                    const PrepareOptions& options, const Context& context);

}  // namespace octavo
