#include "eval/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "eval/layer_relation.h"
#include "runtime/sample_parts.h"

namespace octavo {

namespace {

// KL(softmax(base) || softmax(model)) = log-sum-exp(model) - log-sum-exp(base) - sum_i p_i d_i, d =
// model - base: exact also where it is far below the logits' own size. `base_norm`: the
// log-sum-exp of base.
double RowDivergence(std::span<const float> base, double base_norm, std::span<const float> model) {
  const double growth = LogSumExp(model) - base_norm;
  double mean = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    const auto logit = static_cast<double>(base[i]);
    const auto p = static_cast<double>(std::exp(static_cast<float>(logit - base_norm)));
    mean += p * (static_cast<double>(model[i]) - logit);
  }
  return growth - mean;
}

// The first `tokens` tokens of the windows.
std::vector<std::vector<TokenId>> FirstTokens(std::span<const Window> windows, int64_t tokens) {
  std::vector<std::vector<TokenId>> samples;
  for (const Window& window : windows) {
    const auto count = std::min(std::ssize(window.tokens), tokens);
    if (count == 0) break;
    samples.emplace_back(window.tokens.begin(), window.tokens.begin() + count);
    tokens -= count;
  }
  return samples;
}

Tensor* NormBefore(Block* block, size_t group) {
  if (block->groups()[group] == &block->qkv) return &block->attention_norm.weight;
  if (block->groups()[group] == &block->gate_up) return &block->mlp_norm.weight;
  return nullptr;
}

// Exchanges what runs: done twice, everything is as it was.
void Swap(LoadedModel* base, const Replacement& replacement) {
  const auto index = static_cast<size_t>(replacement.block);
  Block& own = base->mutable_model().blocks[index];
  Block& other = replacement.model->mutable_model().blocks[index];
  LinearGroup* group = own.groups()[replacement.group];
  LinearGroup* put = other.groups()[replacement.group];
  std::swap(group->parts, put->parts);
  std::swap(group->part_columns, put->part_columns);
  Tensor* norm = NormBefore(&own, replacement.group);
  if (norm != nullptr) std::swap(*norm, *NormBefore(&other, replacement.group));
}

}  // namespace

struct SensitivityProbe::Body {
  Body(LoadedModel* loaded, const Context& in)
      : base(loaded), context(in), forward(loaded->model(), in) {}

  int64_t width() const { return base->model().spec.hidden_size; }
  int64_t vocab() const { return base->model().spec.vocab_size; }

  std::span<float> RowsOf(const SamplePart& part, std::vector<float>* rows) const {
    return std::span(*rows).subspan(static_cast<size_t>(part.first_row * width()),
                                    static_cast<size_t>(part.batch.rows() * width()));
  }

  // Runs the blocks that are left over copies of the hidden states, and calls `visit` with the
  // first scored position and the logits of some more.
  template <typename Visit>
  void RunRest(const Visit& visit) {
    int64_t first = 0;
    for (const SamplePart& part : parts) {
      const std::span<float> kept = RowsOf(part, &hidden);
      running.assign(kept.begin(), kept.end());
      for (int64_t i = block; i < base->model().spec.num_layers; ++i)
        RunBlock(&forward, base->model(), i, part, running);
      const int64_t wanted = part.batch.wanted_rows();
      if (wanted == 0) continue;
      logits.resize(static_cast<size_t>(wanted * vocab()));
      forward.Head(part.batch, running, logits);
      visit(first, wanted);
      first += wanted;
    }
  }

  LoadedModel* base;
  const Context& context;
  Forward forward;
  std::vector<SamplePart> parts;
  int64_t positions = 0;
  int64_t block = 0;
  std::vector<float> hidden;       // [rows, width], before `block`
  std::vector<float> base_logits;  // [positions, vocab]
  std::vector<double> base_norms;  // [positions], log-sum-exp
  std::vector<float> running, logits;
};

SensitivityProbe::SensitivityProbe(std::unique_ptr<Body> body) : body_(std::move(body)) {}
SensitivityProbe::~SensitivityProbe() = default;
int64_t SensitivityProbe::block() const {
  return body_->block;
}
int64_t SensitivityProbe::positions() const {
  return body_->positions;
}

Result<std::unique_ptr<SensitivityProbe>> SensitivityProbe::Make(LoadedModel* base,
                                                                 std::span<const Window> windows,
                                                                 const SensitivityOptions& options,
                                                                 const Context& context) {
  const auto samples = FirstTokens(windows, options.tokens);
  if (samples.empty() || options.positions < 1)
    return InvalidArgument("sensitivities need at least one token and one position to compare");
  auto body = std::make_unique<Body>(base, context);
  body->parts = CutIntoParts(samples);
  const int64_t rows = body->parts.back().first_row + body->parts.back().batch.rows();
  const int64_t step = std::max<int64_t>(1, rows / options.positions);
  body->hidden.resize(static_cast<size_t>(rows * body->width()));
  for (SamplePart& part : body->parts) {
    const auto longest = std::max_element(part.batch.position.begin(), part.batch.position.end());
    if (*longest >= base->model().spec.max_positions) {
      return InvalidArgument(
          fmt::format("a window of {} tokens is longer than the model's {} positions", *longest + 1,
                      base->model().spec.max_positions));
    }
    for (int64_t row = step - 1; row < part.batch.rows(); row += step)
      part.batch.want_logits[static_cast<size_t>(row)] = 1;
    body->positions += part.batch.wanted_rows();
    OCTAVO_RETURN_IF_ERROR(body->forward.Embed(part.batch, body->RowsOf(part, &body->hidden)));
  }
  body->base_logits.reserve(static_cast<size_t>(body->positions * body->vocab()));
  body->base_norms.resize(static_cast<size_t>(body->positions));
  const auto vocab = static_cast<size_t>(body->vocab());
  body->RunRest([&](int64_t first, int64_t count) {
    body->base_logits.insert(body->base_logits.end(), body->logits.begin(), body->logits.end());
    context.pool.ParallelFor(count, [&](int64_t i) {
      body->base_norms[static_cast<size_t>(first + i)] =
          LogSumExp(std::span(body->logits).subspan(static_cast<size_t>(i) * vocab, vocab));
    });
  });
  return std::unique_ptr<SensitivityProbe>(new SensitivityProbe(std::move(body)));
}

double SensitivityProbe::Divergence(std::span<const Replacement> replacements) {
  Body& body = *body_;
  for (const Replacement& replacement : replacements) {
    OCTAVO_CHECK(replacement.block >= body.block) << replacement.block;
    Swap(body.base, replacement);
  }
  std::vector<double> rows(static_cast<size_t>(body.positions));
  const auto vocab = static_cast<size_t>(body.vocab());
  body.RunRest([&](int64_t first, int64_t count) {
    body.context.pool.ParallelFor(count, [&](int64_t i) {
      const auto row = static_cast<size_t>(first + i);
      rows[row] = RowDivergence(
          std::span(body.base_logits).subspan(row * vocab, vocab), body.base_norms[row],
          std::span(std::as_const(body.logits)).subspan(static_cast<size_t>(i) * vocab, vocab));
    });
  });
  for (const Replacement& replacement : replacements) Swap(body.base, replacement);
  double sum = 0;
  for (const double row : rows) sum += row;
  return sum / static_cast<double>(body.positions);
}

void SensitivityProbe::Advance() {
  for (const SamplePart& part : body_->parts) {
    RunBlock(&body_->forward, body_->base->model(), body_->block, part,
             body_->RowsOf(part, &body_->hidden));
  }
  ++body_->block;
}

namespace {

// The units of one block that `model` quantizes.
Result<std::vector<LayerUnit>> UnitsOf(const LoadedModel& base, const LoadedModel& model,
                                       int64_t index, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const BlockRelation relation, RelateBlocks(base, model, index, context));
  const Block& block = model.model().blocks[static_cast<size_t>(index)];
  if (relation.rotated) {
    return Unsupported(fmt::format(
        "{}: the model was rotated as a whole (SpinQuant's R1), so that no layer of it fits the "
        "original; sensitivities are measured without that rotation",
        block.name));
  }
  std::vector<std::vector<size_t>> sets;
  if (relation.attention_tied) {
    sets.push_back({0, 1});
  } else {
    sets.insert(sets.end(), {{0}, {1}});
  }
  if (relation.mlp_tied) {
    sets.push_back({2, 3});
  } else {
    sets.insert(sets.end(), {{2}, {3}});
  }
  std::vector<LayerUnit> units;
  for (const std::vector<size_t>& groups : sets) {
    LayerUnit unit{.block = index, .groups = groups, .layers = {}};
    bool quantized = false;
    for (const size_t g : groups) {
      for (const LinearLayer& layer : block.groups()[g]->layers) {
        unit.layers.push_back(layer.name);
        quantized |= layer.quantization.weights.has_value();
      }
    }
    if (quantized) units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace

Result<std::vector<std::vector<UnitSensitivity>>> MeasureSensitivities(
    LoadedModel* base, std::span<LoadedModel* const> models, std::span<const Window> windows,
    const SensitivityOptions& options, const Context& context) {
  for (const LoadedModel* model : models)
    OCTAVO_RETURN_IF_ERROR(CheckSameSizes(base->model(), model->model()));
  OCTAVO_ASSIGN_OR_RETURN(const auto probe,
                          SensitivityProbe::Make(base, windows, options, context));
  const int64_t blocks = base->model().spec.num_layers;
  std::vector<std::vector<UnitSensitivity>> found(models.size());
  // A block's work is that of all behind it and of the head.
  context.progress.Start("sensitivity", blocks * (blocks + 3) / 2);
  for (int64_t index = 0; index < blocks; ++index) {
    for (size_t m = 0; m < models.size(); ++m) {
      OCTAVO_ASSIGN_OR_RETURN(const auto units, UnitsOf(*base, *models[m], index, context));
      for (const LayerUnit& unit : units) {
        OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
        std::vector<Replacement> replacements;
        replacements.reserve(unit.groups.size());
        for (const size_t g : unit.groups) replacements.push_back({models[m], index, g});
        found[m].push_back({unit, probe->Divergence(replacements)});
      }
    }
    probe->Advance();
    context.progress.Advance(blocks - index + 1, fmt::format("block {} of {}", index + 1, blocks));
  }
  context.progress.Finish();
  return found;
}

}  // namespace octavo
