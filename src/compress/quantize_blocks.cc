#include "compress/quantize_blocks.h"

#include <fmt/format.h>

#include "compress/block_io.h"
#include "compress/block_work.h"
#include "compress/calibration.h"
#include "compress/resume.h"
#include "compress/static_inputs.h"
#include "compress/static_outputs.h"
#include "model/forward.h"

namespace octavo {

namespace {

// Both forms of the model that blocks are run in.
struct Passes {
  Calibration calibration;
  Forward source;  // the original block in float32: what the statistics are of
  Forward target;  // the quantized block: what the next one is calibrated on
};

// Runs the block, in the form that `propagate` names, over the calibration tokens: what comes out
// is what the next block gets.
Status FeedOn(const Run& run, Passes* passes, PackedBlock* packed, int64_t index,
              const Context& context) {
  const bool last = index + 1 == run.num_blocks() && !run.plan->quantizes_head();
  if (last || passes->calibration.tokens() == 0) return OkStatus();
  const Propagate propagate = run.options.propagate;
  if (propagate == Propagate::kNone) {
    return passes->calibration.FeedOn(&passes->source, run.source->model(), index, context);
  }
  Model* target = &run.plan->target;
  OCTAVO_RETURN_IF_ERROR(propagate == Propagate::kFull
                             ? PreparePackedBlock(*packed, target, index, context)
                             : PrepareDequantizedBlock(packed, target, index, context));
  OCTAVO_RETURN_IF_ERROR(passes->calibration.FeedOn(&passes->target, *target, index, context));
  ReleasePackedBlock(target, index);
  return OkStatus();
}

// observe -> modify -> pack -> write. `pass` runs the original over the calibration tokens.
Result<PackedBlock> QuantizeWork(const Run& run, const Calibration& calibration, BlockWork* work,
                                 const ObservingPass& pass, CheckpointWriter* writer,
                                 const Context& context) {
  OCTAVO_RETURN_IF_ERROR(pass([&](const LinearGroup& group, const Rows& input) {
    if (GroupWork* observed = FindGroup(work, group))
      observed->statistics.Add(input, run.plan->needs, context);
  }));
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
    passes->source.set_tap(tap);
    const Status status =
        passes->calibration.Observe(&passes->source, run.source->model(), index, context);
    passes->source.set_tap(nullptr);
    return status;
  };
  OCTAVO_ASSIGN_OR_RETURN(PackedBlock packed,
                          QuantizeWork(run, passes->calibration, &work, pass, writer, context));
  OCTAVO_RETURN_IF_ERROR(FeedOn(run, passes, &packed, index, context));
  run.source->ReleaseBlock(index);
  return OkStatus();
}

// The output head, after the last block.
Status QuantizeHead(const Run& run, Passes* passes, CheckpointWriter* writer,
                    const Context& context) {
  OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
  OCTAVO_ASSIGN_OR_RETURN(BlockWork work, ReadHeadWork(*run.source, *run.plan));
  const auto pass = [&](const Tap& tap) {
    return passes->calibration.ObserveHead(run.source->model(), tap, context);
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
  if (passes.calibration.tokens() > 0) {
    OCTAVO_RETURN_IF_ERROR(first > 0 ? Unusable(passes.calibration.Load(first))
                                     : passes.calibration.Embed(model, context));
  }
  for (int64_t i = first; i < run.num_blocks(); ++i) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    const size_t layers_before = run.report->layers.size();
    OCTAVO_RETURN_IF_ERROR(QuantizeBlock(run, &passes, writer, i, context));
    OCTAVO_RETURN_IF_ERROR(CommitBlock(run, passes.calibration, layers_before, writer));
    context.progress.Advance(1, fmt::format("block {} of {}", i + 1, run.num_blocks()));
  }
  return run.plan->quantizes_head() ? QuantizeHead(run, &passes, writer, context) : OkStatus();
}

}  // namespace octavo
