#include "compress/pipeline.h"

#include "base/usage.h"
#include "compress/calibration_data.h"
#include "compress/check_rotation.h"
#include "compress/estimate.h"
#include "compress/journal.h"
#include "compress/output.h"
#include "compress/plan.h"
#include "compress/quantize_blocks.h"
#include "compress/request.h"
#include "compress/resume.h"
#include "compress/run.h"
#include "io/checkpoint_writer.h"
#include "io/work_folder.h"
#include "runtime/load.h"

namespace octavo {

namespace {

const LoadOptions kSourceOptions = {.prepare = {}, .load_blocks = false, .dequantize = true};

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
    if (done.attention) run.report->attention.push_back(*done.attention);
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
  OCTAVO_ASSIGN_OR_RETURN(const auto source, LoadModel(options.model, kSourceOptions, context));
  OCTAVO_ASSIGN_OR_RETURN(QuantizationPlan plan, MakePlan(source.get(), recipe, context));
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
  if (status.ok() && journal.done().empty() && plan.rotates())
    status = CheckRotation(options.model, kSourceOptions, source.get(), context);
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
