#include "compress/quantize_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "compress/attention_scales.h"
#include "compress/block_io.h"
#include "compress/block_work.h"
#include "compress/calibration.h"
#include "compress/resume.h"
#include "compress/static_inputs.h"
#include "compress/static_outputs.h"
#include "model/forward.h"
#include "quant/quantize_weight.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

// Both forms of the model that blocks are run in.
struct Passes {
  Calibration calibration;
  Forward source;              // the original block in float32: what the statistics are of
  Forward target;              // the quantized block: what the next one is calibrated on
  PackedBlock embedding = {};  // where it is quantized: the target's table may read it
};

// The block in the target's graph, in the form that `propagate` names.
Status PrepareTarget(const Run& run, const BlockWork& work, PackedBlock* packed,
                     const Context& context) {
  Model* target = &run.plan->target;
  switch (run.options.propagate) {
    case Propagate::kFull:
      return PreparePackedBlock(*packed, target, work.index, context);
    case Propagate::kWeights:
      return PrepareDequantizedBlock(packed, target, work.index, context);
    case Propagate::kNone:
      return PrepareFloatBlock(work, *packed, target, context);
  }
  return OkStatus();
}

// Finds the scales of what attention keeps on the prepared block's own keys and values, and writes
// them. A block that is to be served as it stands rounds by them from now on.
Status QuantizeAttention(const Run& run, Passes* passes, CheckpointWriter* writer, int64_t index,
                         const Context& context) {
  Model& target = run.plan->target;
  Block& block = target.blocks[static_cast<size_t>(index)];
  OCTAVO_ASSIGN_OR_RETURN(AttentionObserver observer, AttentionObserver::Make(block, target.spec));
  Status status;
  passes->target.set_attention_tap([&](const AttentionRows& rows) {
    if (status.ok()) status = observer.Observe(rows, passes->calibration.running_batch().sequence);
  });
  const Status passed = passes->calibration.Observe(&passes->target, target, index, context,
                                                    Forward::Until::kAttentionTap);
  passes->target.set_attention_tap(nullptr);
  OCTAVO_RETURN_IF_ERROR(passed);
  OCTAVO_RETURN_IF_ERROR(status);
  OCTAVO_ASSIGN_OR_RETURN(AttentionReport report, observer.Report());
  OCTAVO_ASSIGN_OR_RETURN(const LayerTensors tensors,
                          PackAttentionScales(report, block, target.spec));
  for (const auto& [suffix, tensor] : tensors) {
    OCTAVO_RETURN_IF_ERROR(writer->Write(fmt::format("{}.{}", block.attention, suffix), tensor));
  }
  context.log.Info(fmt::format("{}: error of keys {:.1e}, of values {:.1e}", report.name,
                               report.key_error, report.value_error));
  if (run.options.propagate == Propagate::kFull) UseAttentionScales(report, target.spec, &block);
  run.report->attention.push_back(std::move(report));
  return OkStatus();
}

// Gives the tap what layers read once it is transformed: statistics are of that.
Tap AfterTransforms(const Tap& tap, const Context& context) {
  return [&tap, &context, transformed = std::vector<float>()](const LinearGroup& group,
                                                              const Rows& input) mutable {
    const RowTransforms& transforms = group.layers.front().input_transforms;
    if (transforms.empty()) return tap(group, input);
    const int64_t k = input.k;
    transformed.resize(static_cast<size_t>(input.m * k));
    for (int64_t row = 0; row < input.m; ++row)
      std::copy_n(input.data + row * input.stride, k, transformed.data() + row * k);
    for (const auto& transform : transforms)
      transform->ApplyInPlace(transformed.data(), k, input.m, k, context);
    tap(group, {transformed.data(), input.m, k, k});
  };
}

// Runs the block, in the form that `propagate` names, over the calibration tokens: what comes out
// is what the next block gets.
Status FeedOn(const Run& run, Passes* passes, int64_t index, const Context& context) {
  return run.options.propagate == Propagate::kNone
             ? passes->calibration.FeedOn(&passes->source, run.source->model(), index, context)
             : passes->calibration.FeedOn(&passes->target, run.plan->target, index, context);
}

// observe -> modify -> pack -> write. `pass` runs the original over the calibration tokens.
Result<PackedBlock> QuantizeWork(const Run& run, const Calibration& calibration, BlockWork* work,
                                 const ObservingPass& pass, CheckpointWriter* writer,
                                 const Context& context) {
  if (run.plan->needs.any()) {
    OCTAVO_RETURN_IF_ERROR(pass([&](const LinearGroup& group, const Rows& input) {
      if (GroupWork* observed = FindGroup(work, group))
        observed->statistics.Add(input, run.plan->needs, context);
    }));
  }
  for (GroupWork& group : work->groups) group.statistics.Finish(context);
  for (const auto& modifier : run.recipe.modifiers) {
    OCTAVO_RETURN_IF_ERROR(modifier->Apply(work, context).Annotate(modifier->class_name()));
  }
  OCTAVO_RETURN_IF_ERROR(SetStaticInputs(work, calibration, pass));
  OCTAVO_RETURN_IF_ERROR(SetStaticOutputs(work, *run.source, calibration, pass, context));
  OCTAVO_ASSIGN_OR_RETURN(PackedBlock packed, PackBlock(*work, *run.source, run.report, context));
  LogBlock(*work, *run.report, context.log);
  OCTAVO_RETURN_IF_ERROR(WritePackedBlock(packed, writer));
  return packed;
}

Status QuantizeBlock(const Run& run, Passes* passes, CheckpointWriter* writer, int64_t index,
                     const Context& context) {
  OCTAVO_RETURN_IF_ERROR(run.source->LoadBlock(index, context));
  OCTAVO_ASSIGN_OR_RETURN(BlockWork work, ReadBlockWork(*run.source, *run.plan, index));
  const auto pass = [&](const Tap& tap) {
    passes->source.set_tap(AfterTransforms(tap, context));
    const Status status =
        passes->calibration.Observe(&passes->source, run.source->model(), index, context);
    passes->source.set_tap(nullptr);
    return status;
  };
  OCTAVO_ASSIGN_OR_RETURN(PackedBlock packed,
                          QuantizeWork(run, passes->calibration, &work, pass, writer, context));
  const bool feeds = passes->calibration.tokens() > 0 &&
                     (index + 1 < run.num_blocks() || run.plan->quantizes_head());
  const bool runs_target = feeds && run.options.propagate != Propagate::kNone;
  if (run.plan->quantizes_attention() || runs_target)
    OCTAVO_RETURN_IF_ERROR(PrepareTarget(run, work, &packed, context));
  if (run.plan->quantizes_attention())
    OCTAVO_RETURN_IF_ERROR(QuantizeAttention(run, passes, writer, index, context));
  if (feeds) OCTAVO_RETURN_IF_ERROR(FeedOn(run, passes, index, context));
  ReleasePackedBlock(&run.plan->target, index);
  run.source->ReleaseBlock(index);
  return OkStatus();
}

// The embedding, before the first block. It is rounded to nearest whoever asks for it: it has no
// input that GPTQ could go by.
Status QuantizeEmbedding(const Run& run, Passes* passes, CheckpointWriter* writer,
                         const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(BlockWork work, ReadEmbeddingWork(*run.source, *run.plan));
  LayerWork& embedding = work.groups.front().layers.front();
  const LinearLayer& layer = *embedding.layer;
  auto quantized = QuantizeToNearest(*layer.quantization.weights, embedding.weight.data<float>(),
                                     layer.n, layer.k, layer.model_dtype);
  if (!quantized.ok()) return quantized.status().Annotate(layer.name);
  embedding.quantized = *std::move(quantized);
  embedding.method = "rtn";
  OCTAVO_ASSIGN_OR_RETURN(passes->embedding, PackBlock(work, *run.source, run.report, context));
  LogBlock(work, *run.report, context.log);
  OCTAVO_RETURN_IF_ERROR(WritePackedBlock(passes->embedding, writer));
  if (run.options.propagate == Propagate::kNone) return OkStatus();
  OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
  OCTAVO_ASSIGN_OR_RETURN(
      run.plan->target.embedding_table,
      scheme->prepare_table(layer, passes->embedding.groups.front().views.front(), context));
  return OkStatus();
}

// What goes into the first block.
Status Embed(const Run& run, Passes* passes, const Context& context) {
  if (run.plan->target.embedding_table != nullptr)
    return passes->calibration.Embed(run.plan->target, context);
  OCTAVO_RETURN_IF_ERROR(run.source->LoadEmbedding(context));
  OCTAVO_RETURN_IF_ERROR(passes->calibration.Embed(run.source->model(), context));
  run.source->ReleaseEnds();
  return OkStatus();
}

// The output head, after the last block.
Status QuantizeHead(const Run& run, Passes* passes, CheckpointWriter* writer,
                    const Context& context) {
  OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
  OCTAVO_ASSIGN_OR_RETURN(BlockWork work, ReadHeadWork(*run.source, *run.plan));
  const auto pass = [&](const Tap& tap) {
    return passes->calibration.ObserveHead(run.source->model(), AfterTransforms(tap, context),
                                           context);
  };
  const auto packed = QuantizeWork(run, passes->calibration, &work, pass, writer, context);
  return packed.ok() ? OkStatus() : packed.status();
}

// The block's tensors and the next block's input are on disk before the journal says so.
Status CommitBlock(const Run& run, const Calibration& calibration, size_t layers_before,
                   CheckpointWriter* writer) {
  DoneBlock done;
  OCTAVO_ASSIGN_OR_RETURN(done.tensors, writer->SyncWritten());
  const auto& layers = run.report->layers;
  if (run.plan->quantizes_attention()) done.attention = run.report->attention.back();
  done.layers.assign(layers.begin() + static_cast<std::ptrdiff_t>(layers_before), layers.end());
  run.stopwatch->Take(&done.seconds, &done.cpu_seconds);
  OCTAVO_RETURN_IF_ERROR(run.journal->Append(std::move(done)));
  return calibration.RemoveOthers();
}

}  // namespace

Status QuantizeBlocks(const Run& run, CheckpointWriter* writer, const Context& context) {
  const auto first = std::ssize(run.journal->done());
  if (first == run.num_blocks() && !run.plan->quantizes_head()) return OkStatus();
  const Model& model = run.source->model();
  Passes passes{
      Calibration(run.dataset.samples, HiddenStates(run.folder->path(), run.dataset.tokens,
                                                    model.spec.hidden_size, run.hidden_in_memory)),
      Forward(model, context), Forward(run.plan->target, context)};
  // The embedding counts as the first block's part: done with it, or not at all.
  size_t layers_before = run.report->layers.size();
  if (first == 0 && run.plan->quantizes_embedding())
    OCTAVO_RETURN_IF_ERROR(QuantizeEmbedding(run, &passes, writer, context));
  if (passes.calibration.tokens() > 0) {
    OCTAVO_RETURN_IF_ERROR(first > 0 ? Unusable(passes.calibration.Load(first))
                                     : Embed(run, &passes, context));
  }
  for (int64_t i = first; i < run.num_blocks(); ++i) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(QuantizeBlock(run, &passes, writer, i, context));
    OCTAVO_RETURN_IF_ERROR(CommitBlock(run, passes.calibration, layers_before, writer));
    layers_before = run.report->layers.size();
    context.progress.Advance(1, fmt::format("block {} of {}", i + 1, run.num_blocks()));
  }
  return run.plan->quantizes_head() ? QuantizeHead(run, &passes, writer, context) : OkStatus();
}

}  // namespace octavo
