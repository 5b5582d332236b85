// The whole of a comparison as JSON.
#include <fmt/format.h>

#include "eval/comparison.h"

namespace octavo {

namespace {

Value OrNull(const std::optional<double>& value) {
  return value ? Value(*value) : Value();
}

void SetMean(const std::string& key, const WindowedMean& mean, Value* json) {
  json->Set(key, mean.mean);
  json->Set(key + "_error", OrNull(mean.error));
}

void SetModel(const ComparedModel& model, Value* json) {
  json->Set("model", model.folder);
  json->Set("label", model.label);
  json->Set("scheme", model.scheme);
  json->Set("bytes", model.bytes);
  json->Set("bits_per_weight", model.bits_per_weight);
  if (model.speed) {
    json->Set("prefill_tokens", model.speed->prompt_tokens);
    json->Set("prefill_tokens_per_second", model.speed->prefill);
    json->Set("decode_tokens_per_second", model.speed->decode);
  }
  if (!model.provenance) return;
  Value hashes = Value::MakeObject();
  for (const auto& [file, hash] : model.provenance->hashes) hashes.Set(file, hash);
  json->Set("sha256", std::move(hashes));
  json->Set("recipe_source", model.provenance->recipe_source);
  json->Set("recipe", model.provenance->recipe);
}

void SetQuality(const PredictionQuality& quality, Value* json) {
  SetMean("nll", quality.nll, json);
  SetMean("perplexity", quality.perplexity, json);
  Value bins = Value::MakeArray();
  for (const CalibrationBin& bin : quality.calibration) {
    Value object = Value::MakeObject();
    object.Set("positions", bin.positions);
    object.Set("probability", bin.probability);
    object.Set("right", bin.right);
    bins.as_array().push_back(std::move(object));
  }
  json->Set("calibration", std::move(bins));
  json->Set("calibration_error", quality.calibration_error);
}

void SetDivergence(const Divergence& divergence, Value* json) {
  const KlSummary& kl = divergence.kl;
  SetMean("kl", kl.mean, json);
  json->Set("kl_median", kl.median);
  json->Set("kl_99", kl.percentile_99);
  json->Set("kl_99.9", kl.percentile_999);
  json->Set("kl_largest", kl.largest);
  Value histogram = Value::MakeObject();
  histogram.Set("edges", Value::Array(kl.histogram.edges.begin(), kl.histogram.edges.end()));
  histogram.Set("counts", Value::Array(kl.histogram.counts.begin(), kl.histogram.counts.end()));
  json->Set("kl_histogram", std::move(histogram));
  json->Set("same_top1", divergence.same_top1);
  json->Set("same_top5", divergence.same_top5);
  Value change = Value::MakeObject();
  change.Set("mean", divergence.true_token.mean);
  change.Set("rms", divergence.true_token.rms);
  for (size_t i = 0; i < kChangePercentiles.size(); ++i)
    change.Set(fmt::format("{:g}%", 100 * kChangePercentiles[i]),
               divergence.true_token.percentiles[i]);
  json->Set("true_token_change", std::move(change));
  SetMean("perplexity_ratio", divergence.perplexity_ratio, json);
}

Value TasksJson(const std::vector<PairedTask>& tasks) {
  Value list = Value::MakeArray();
  for (const PairedTask& task : tasks) {
    for (const PairedFigure& figure : task.figures) {
      Value object = Value::MakeObject();
      object.Set("task", task.name);
      object.Set("documents", task.documents);
      object.Set("metric", figure.metric);
      object.Set("filter", figure.filter);
      object.Set("higher_is_better", figure.higher_is_better);
      object.Set("base", figure.base);
      object.Set("value", figure.model);
      object.Set("recovery", OrNull(figure.recovery));
      object.Set("difference_low", figure.difference.low);
      object.Set("difference_high", figure.difference.high);
      if (figure.mcnemar) {
        object.Set("only_base", figure.mcnemar->only_base);
        object.Set("only_model", figure.mcnemar->only_model);
        object.Set("p", figure.mcnemar->p);
        object.Set("threshold", figure.mcnemar->threshold);
      }
      object.Set("sentence", figure.sentence);
      list.as_array().push_back(std::move(object));
    }
  }
  return list;
}

Value BoundsJson(const std::vector<BoundCheck>& bounds) {
  Value list = Value::MakeArray();
  for (const BoundCheck& check : bounds) {
    Value object = Value::MakeObject();
    object.Set("model", check.model);
    object.Set("bound", check.bound);
    object.Set("limit", check.limit);
    object.Set("measured", check.measured);
    object.Set("passed", check.passed);
    list.as_array().push_back(std::move(object));
  }
  return list;
}

}  // namespace

Value ToJson(const Comparison& comparison) {
  Value json = Value::MakeObject();
  json.Set("octavo_version", comparison.run.version);
  json.Set("environment", comparison.run.environment);
  json.Set("command_line", comparison.run.command_line);
  json.Set("date", comparison.run.date);
  const auto& lockstep = comparison.lockstep;
  if (lockstep) {
    json.Set("text", comparison.text);
    json.Set("windows", lockstep->windows);
    json.Set("positions", lockstep->positions);
    json.Set("tokens", lockstep->tokens);
    json.Set("seconds", lockstep->seconds);
  }
  Value base = Value::MakeObject();
  SetModel(comparison.base, &base);
  if (lockstep) SetQuality(lockstep->base, &base);
  json.Set("base", std::move(base));
  Value models = Value::MakeArray();
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    Value model = Value::MakeObject();
    SetModel(comparison.models[i], &model);
    if (lockstep) {
      SetQuality(lockstep->models[i].quality, &model);
      SetDivergence(lockstep->models[i].divergence, &model);
    }
    if (!comparison.tasks.empty()) model.Set("tasks", TasksJson(comparison.tasks[i]));
    if (!comparison.layers.empty()) model.Set("layers", ToJson(comparison.layers[i]));
    if (!comparison.sensitivities.empty())
      model.Set("sensitivities", ToJson(comparison.sensitivities[i]));
    models.as_array().push_back(std::move(model));
  }
  json.Set("models", std::move(models));
  if (!comparison.bounds.empty()) json.Set("bounds", BoundsJson(comparison.bounds));
  return json;
}

}  // namespace octavo
