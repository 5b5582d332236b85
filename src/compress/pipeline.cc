#include "compress/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>

#include "base/usage.h"
#include "compress/block_io.h"
#include "compress/block_work.h"
#include "compress/calibration.h"
#include "compress/estimate.h"
#include "compress/journal.h"
#include "compress/output.h"
#include "compress/plan.h"
#include "compress/request.h"
#include "compress/resume.h"
#include "compress/static_inputs.h"
#include "io/checkpoint_writer.h"
#include "io/work_folder.h"
#include "model/forward.h"
#include "runtime/load.h"
#include "text/chat_template.h"
#include "text/dataset.h"
#include "text/tokenizer.h"

namespace octavo {

namespace {

// The calibration samples as token ids; none where the recipe needs no data.
Result<Dataset> ReadCalibration(const QuantizeOptions& options, const QuantizationPlan& plan) {
  if (!plan.needs_data()) return Dataset();
  if (options.calibration.empty()) {
    return InvalidArgument(
        fmt::format("the recipe needs calibration data (for {}): give --calibration FILE (rows "
                    "with \"messages\", \"conversations\", \"text\" or \"input_ids\")",
                    fmt::join(plan.needed_by, ", ")));
  }
  const bool has_tokenizer = std::filesystem::exists(options.model / "tokenizer.json");
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  if (has_tokenizer) {
    OCTAVO_ASSIGN_OR_RETURN(tokenizer, Tokenizer::Load(options.model));
    auto found = ChatTemplate::Load(options.model);
    if (found.ok()) {
      chat_template = std::move(found).value();
    } else if (found.status().code() != StatusCode::kNotFound) {
      return found.status();
    }
  }
  return ReadDataset(options.calibration, options.dataset, tokenizer ? &*tokenizer : nullptr,
                     chat_template ? &*chat_template : nullptr);
}

// Time and processor time since the last Take.
class Stopwatch {
 public:
  void Take(double* seconds, double* cpu_seconds) {
    const auto now = std::chrono::steady_clock::now();
    const double cpu_now = CpuSeconds();
    *seconds = std::chrono::duration<double>(now - start_).count();
    *cpu_seconds = cpu_now - cpu_start_;
    start_ = now;
    cpu_start_ = cpu_now;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double cpu_start_ = CpuSeconds();
};

// What one pass through the recipe shares from block to block.
struct Run {
  const QuantizeOptions& options;
  const Recipe& recipe;
  LoadedModel* source;
  QuantizationPlan* plan;
  const Dataset& dataset;
  std::shared_ptr<const WorkFolder> folder;
  Journal* journal;
  QuantizationReport* report;
  Stopwatch* stopwatch;
  bool hidden_in_memory;

  int64_t num_blocks() const { return source->model().spec.num_layers; }
};

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

// All blocks that the journal does not have yet.
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

// Everything that is no block's, the check of the whole, and the move into place. Each step can be
// done again: a run that is killed here begins the saving anew.
Status Save(const Run& run, CheckpointWriter* writer, const Context& context) {
  const Checkpoint& checkpoint = run.source->checkpoint();
  const std::filesystem::path& folder = writer->unfinished_folder();
  context.progress.Start("save", 3);
  OCTAVO_RETURN_IF_ERROR(WriteUnquantizedTensors(checkpoint, *run.plan, writer));
  context.progress.Advance(1, "weights");
  OCTAVO_RETURN_IF_ERROR(WriteOtherFiles(checkpoint, *run.plan, run.recipe, folder));
  OCTAVO_RETURN_IF_ERROR(writer->Finish());
  OCTAVO_RETURN_IF_ERROR(
      VerifyOutput(folder, *run.source, *run.plan, context).Annotate("the result was checked"));
  context.progress.Advance(1, "checked");

  double seconds = 0;
  double cpu_seconds = 0;
  run.stopwatch->Take(&seconds, &cpu_seconds);
  run.report->seconds += seconds;
  run.report->cpu_seconds += cpu_seconds;
  run.report->peak_rss_bytes = PeakRssBytes();
  OCTAVO_RETURN_IF_ERROR(WriteReport(*run.report, folder));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t inode, Inode(folder));
  OCTAVO_RETURN_IF_ERROR(run.journal->AppendSaved(inode));
  context.progress.Advance(1, "report");
  OCTAVO_RETURN_IF_ERROR(writer->Commit());
  context.progress.Finish();
  return OkStatus();
}

// A writer of all planned tensors, in which those of blocks that are done are written already.
Result<CheckpointWriter> MakeWriter(const Run& run) {
  const std::vector<DoneBlock>& done = run.journal->done();
  auto writer = CheckpointWriter::Create(run.folder, run.plan->tensors,
                                         {.max_shard_bytes = run.options.max_shard_bytes,
                                          .force = run.options.force,
                                          .resume = !done.empty()});
  if (!writer.ok()) return done.empty() ? writer.status() : Unusable(writer.status());
  for (const DoneBlock& block : done) {
    OCTAVO_RETURN_IF_ERROR(Unusable(writer->MarkWritten(block.tensors)));
  }
  return writer;
}

Status Make(const Run& run, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(CheckpointWriter writer, MakeWriter(run));
  for (const DoneBlock& done : run.journal->done()) {
    run.report->layers.insert(run.report->layers.end(), done.layers.begin(), done.layers.end());
  }
  context.progress.Start("quantize", run.num_blocks());
  OCTAVO_RETURN_IF_ERROR(QuantizeBlocks(run, &writer, context));
  context.progress.Finish();
  for (const DoneBlock& done : run.journal->done()) {
    run.report->seconds += done.seconds;
    run.report->cpu_seconds += done.cpu_seconds;
  }
  return Save(run, &writer, context);
}

}  // namespace

Result<QuantizationReport> Quantize(const QuantizeOptions& options, const Recipe& recipe,
                                    const Context& context) {
  Stopwatch stopwatch;
  QuantizationReport report;
  OCTAVO_ASSIGN_OR_RETURN(const auto source,
                          LoadModel(options.model, {.prepare = {}, .load_blocks = false}, context));
  OCTAVO_ASSIGN_OR_RETURN(QuantizationPlan plan, MakePlan(*source, recipe, context.log));
  OCTAVO_ASSIGN_OR_RETURN(const Dataset dataset, ReadCalibration(options, plan));
  ReportPlan(*source, plan, dataset, context.log, &report);
  OCTAVO_ASSIGN_OR_RETURN(
      const Estimate estimate,
      EstimateQuantization(options, plan, dataset, report.output_bytes, context));
  ReportEstimate(estimate, context.log);
  if (options.dry_run) {
    report.estimate = estimate;
    OCTAVO_RETURN_IF_ERROR(CheckDiskSpace(options.out, estimate));
    return report;
  }

  OCTAVO_ASSIGN_OR_RETURN(const Value request,
                          DescribeRequest(options, recipe, source->checkpoint(), context.isa));
  OCTAVO_ASSIGN_OR_RETURN(const auto folder, WorkFolder::Open(options.out));
  const int64_t num_blocks = source->model().spec.num_layers;
  OCTAVO_ASSIGN_OR_RETURN(
      Journal journal, Journal::Open(*folder, request, num_blocks, options.restart, context.log));
  if (auto finished = FinishedBefore(journal, *folder)) return *std::move(finished);
  Status status = CheckOutput(folder->out(), options.force);
  if (status.ok() && journal.done().empty()) status = CheckDiskSpace(options.out, estimate);
  if (status.ok()) {
    status = Make({.options = options,
                   .recipe = recipe,
                   .source = source.get(),
                   .plan = &plan,
                   .dataset = dataset,
                   .folder = folder,
                   .journal = &journal,
                   .report = &report,
                   .stopwatch = &stopwatch,
                   .hidden_in_memory = estimate.hidden_in_memory},
                  context);
  }
  if (!status.ok()) return KeepOrRemove(status, journal, num_blocks, *folder);
  return report;
}

}  // namespace octavo
