#include "compress/pipeline.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "base/usage.h"
#include "compress/block_io.h"
#include "compress/block_work.h"
#include "compress/calibration.h"
#include "compress/output.h"
#include "compress/plan.h"
#include "io/checkpoint_writer.h"
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
        "the recipe needs calibration data: give --calibration FILE (JSON lines with \"messages\", "
        "\"text\" or \"input_ids\")");
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

// What one pass through the recipe shares from block to block.
struct Run {
  LoadedModel* source;
  QuantizationPlan* plan;
  const Recipe* recipe;
  CheckpointWriter* writer;
  Calibration calibration;
  Forward source_forward;  // the original block in float32: what the statistics are of
  Forward target_forward;  // the quantized block: what the next one is calibrated on
  QuantizationReport* report;
  Propagate propagate;
};

// Runs the block, in the form that `propagate` names, over the calibration tokens: what comes out
// is what the next block gets.
Status FeedOn(Run* run, PackedBlock* packed, int64_t index, const Context& context) {
  const bool last = index + 1 == run->source->model().spec.num_layers;
  if (last || run->calibration.tokens() == 0) return OkStatus();
  if (run->propagate == Propagate::kNone) {
    return run->calibration.RunBlock(&run->source_forward, run->source->model(), index,
                                     Calibration::Output::kKeep, context);
  }
  Model* target = &run->plan->target;
  OCTAVO_RETURN_IF_ERROR(run->propagate == Propagate::kFull
                             ? PreparePackedBlock(*packed, target, index, context)
                             : PrepareDequantizedBlock(packed, target, index, context));
  OCTAVO_RETURN_IF_ERROR(run->calibration.RunBlock(&run->target_forward, *target, index,
                                                   Calibration::Output::kKeep, context));
  ReleasePackedBlock(target, index);
  return OkStatus();
}

// observe -> modify -> pack -> write -> feed on.
Status QuantizeBlock(Run* run, int64_t index, const Context& context) {
  const Model& model = run->source->model();
  OCTAVO_RETURN_IF_ERROR(run->source->LoadBlock(index, context));
  OCTAVO_ASSIGN_OR_RETURN(BlockWork work, ReadBlockWork(*run->source, *run->plan, index));

  run->source_forward.set_tap([&](const LinearGroup& group, const Rows& input) {
    if (GroupWork* observed = FindGroup(&work, group))
      observed->statistics.Add(input, run->plan->needs, context);
  });
  OCTAVO_RETURN_IF_ERROR(run->calibration.RunBlock(&run->source_forward, model, index,
                                                   Calibration::Output::kDrop, context));
  run->source_forward.set_tap(nullptr);

  for (const auto& modifier : run->recipe->modifiers) {
    OCTAVO_RETURN_IF_ERROR(modifier->Apply(&work, context).Annotate(modifier->class_name()));
  }
  OCTAVO_ASSIGN_OR_RETURN(PackedBlock packed, PackBlock(work, *run->source, run->report, context));
  LogBlock(work, *run->report, context.log);
  OCTAVO_RETURN_IF_ERROR(WritePackedBlock(packed, run->writer));
  OCTAVO_RETURN_IF_ERROR(FeedOn(run, &packed, index, context));
  run->source->ReleaseBlock(index);
  return OkStatus();
}

}  // namespace

Result<QuantizationReport> Quantize(const QuantizeOptions& options, const Recipe& recipe,
                                    const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  QuantizationReport report;

  OCTAVO_ASSIGN_OR_RETURN(const auto source,
                          LoadModel(options.model, {.prepare = {}, .load_blocks = false}, context));
  OCTAVO_ASSIGN_OR_RETURN(QuantizationPlan plan, MakePlan(*source, recipe, context.log));
  OCTAVO_ASSIGN_OR_RETURN(const Dataset dataset, ReadCalibration(options, plan));
  ReportPlan(*source, plan, dataset, context.log, &report);
  if (options.dry_run) return report;

  OCTAVO_ASSIGN_OR_RETURN(CheckpointWriter writer,
                          CheckpointWriter::Create(options.out, plan.tensors,
                                                   {.max_shard_bytes = options.max_shard_bytes,
                                                    .force = options.force}));
  const AbandonUnlessCommitted guard(&writer);
  OCTAVO_ASSIGN_OR_RETURN(Calibration calibration,
                          Calibration::Embed(source->model(), dataset.samples, context));
  Run run{source.get(),
          &plan,
          &recipe,
          &writer,
          std::move(calibration),
          Forward(source->model(), context),
          Forward(plan.target, context),
          &report,
          options.propagate};

  const int64_t num_blocks = source->model().spec.num_layers;
  context.progress.Start("quantize", num_blocks);
  for (int64_t i = 0; i < num_blocks; ++i) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(QuantizeBlock(&run, i, context));
    context.progress.Advance(1, fmt::format("block {} of {}", i + 1, num_blocks));
  }
  context.progress.Finish();

  OCTAVO_RETURN_IF_ERROR(WriteUnquantizedTensors(source->checkpoint(), plan, &writer));
  OCTAVO_RETURN_IF_ERROR(
      WriteOtherFiles(source->checkpoint(), plan, recipe, writer.unfinished_folder()));
  OCTAVO_RETURN_IF_ERROR(writer.Finish());
  OCTAVO_RETURN_IF_ERROR(VerifyOutput(writer.unfinished_folder(), *source, plan, context)
                             .Annotate("the result was checked"));

  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.cpu_seconds = CpuSeconds() - cpu_start;
  report.peak_rss_bytes = PeakRssBytes();
  OCTAVO_RETURN_IF_ERROR(WriteReport(report, writer.unfinished_folder()));
  OCTAVO_RETURN_IF_ERROR(writer.Commit());
  return report;
}

}  // namespace octavo
