#include "eval/layer_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/layer_relation.h"
#include "runtime/sample_parts.h"

namespace octavo {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct ErrorSums {
  double error = 0, base = 0, model = 0, dot = 0;

  void Add(double y, double other) {
    error += (other - y) * (other - y);
    base += y * y;
    model += other * other;
    dot += y * other;
  }
  ErrorSums& operator+=(const ErrorSums& sums) {
    error += sums.error;
    base += sums.base;
    model += sums.model;
    dot += sums.dot;
    return *this;
  }
  OutputError Finish() const {
    if (base <= 0) return {.relative = error > 0 ? kInfinity : 0, .cosine = error > 0 ? 0.0 : 1.0};
    return {.relative = error / base, .cosine = model > 0 ? dot / std::sqrt(base * model) : 0.0};
  }
};

// Some columns of a matrix of rows.
struct Columns {
  const float* data = nullptr;
  int64_t stride = 0;
  int64_t width = 0;
};

// Sums over m rows; `scale` [width] takes `other` to the units of y, empty: it is in them. Rows are
// added up apart and then in order, so that threads do not change the sum.
ErrorSums SumRows(const Columns& y, const Columns& other, int64_t m, std::span<const float> scale,
                  ThreadPool& pool) {
  std::vector<ErrorSums> rows(static_cast<size_t>(m));
  pool.ParallelFor(m, [&](int64_t row) {
    ErrorSums sums;
    const float* a = y.data + row * y.stride;
    const float* b = other.data + row * other.stride;
    for (int64_t j = 0; j < y.width; ++j) {
      const float factor = scale.empty() ? 1.0F : scale[static_cast<size_t>(j)];
      sums.Add(static_cast<double>(a[j]), static_cast<double>(b[j] * factor));
    }
    rows[static_cast<size_t>(row)] = sums;
  });
  ErrorSums total;
  for (const ErrorSums& row : rows) total += row;
  return total;
}

void RaiseToMagnitudes(const Rows& x, std::vector<float>* largest) {
  largest->resize(static_cast<size_t>(x.k));
  for (int64_t row = 0; row < x.m; ++row) {
    const float* values = x.data + row * x.stride;
    for (size_t j = 0; j < largest->size(); ++j)
      (*largest)[j] = std::max((*largest)[j], std::fabs(values[j]));
  }
}

double LargestOverMedian(std::vector<float> magnitudes) {
  const auto middle = magnitudes.begin() + std::ssize(magnitudes) / 2;
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  const double median = static_cast<double>(*middle);
  const double largest =
      static_cast<double>(*std::max_element(magnitudes.begin(), magnitudes.end()));
  if (median > 0) return largest / median;
  return largest > 0 ? kInfinity : 1.0;
}

// Sums of one group of layers over the parts so far.
struct GroupSums {
  std::vector<ErrorSums> layers;
  std::vector<float> magnitudes_before, magnitudes_after;  // [k], of channels
};

// Compares the groups of one block as the base's pass meets them.
class BlockComparison {
 public:
  BlockComparison(const Block& base, const Block& model, const BlockRelation& relation,
                  const Context& context)
      : base_(base), model_(model), relation_(relation), context_(context) {}

  // To be the tap of the base's pass.
  void Compare(const LinearGroup& group, const Rows& x) {
    const auto base_groups = base_.groups();
    const auto g = static_cast<size_t>(std::find(base_groups.begin(), base_groups.end(), &group) -
                                       base_groups.begin());
    const LinearGroup& quantized = *model_.groups()[g];
    GroupSums& sums = sums_[g];
    RaiseToMagnitudes(x, &sums.magnitudes_before);
    const Rows input = Scaled(x, relation_.groups[g].input_scale);
    AddMagnitudesAfter(quantized, input, &sums.magnitudes_after);
    const int64_t n = group.n();
    const auto size = static_cast<size_t>(x.m * n);
    base_output_.resize(size);
    model_output_.resize(size);
    MultiplyGroup(group, x, &quantized_rows_, base_output_.data(), context_);
    MultiplyGroup(quantized, input, &quantized_rows_, model_output_.data(), context_);
    sums.layers.resize(group.layers.size());
    int64_t column = 0;
    for (size_t l = 0; l < group.layers.size(); ++l) {
      const int64_t width = group.layers[l].n;
      sums.layers[l] += SumRows({base_output_.data() + column, n, width},
                                {model_output_.data() + column, n, width}, x.m,
                                relation_.groups[g].layers[l].output_scale, context_.pool);
      column += width;
    }
  }

  void Finish(int64_t index, std::vector<ComparedLayer>* layers) const {
    const auto groups = model_.groups();
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t l = 0; l < groups[g]->layers.size(); ++l) {
        const LinearLayer& layer = groups[g]->layers[l];
        const LayerRelation& related = relation_.groups[g].layers[l];
        ComparedLayer& compared = layers->emplace_back();
        compared.name = layer.name;
        compared.block = index;
        compared.projection = layer.name.substr(layer.name.rfind('.') + 1);
        if (layer.quantization.weights) compared.scheme = NameOf(layer.quantization);
        compared.outliers_before = LargestOverMedian(sums_[g].magnitudes_before);
        compared.outliers_after = LargestOverMedian(sums_[g].magnitudes_after);
        compared.weight_sqnr_db = related.weight_sqnr_db;
        if (!relation_.rotated && !related.other_basis)
          compared.output = sums_[g].layers[l].Finish();
      }
    }
  }

 private:
  static std::string NameOf(const QuantizationScheme& scheme) {
    QuantizationScheme unnamed = scheme;
    if (scheme.format == InferFormat(scheme)) unnamed.format.reset();
    return PresetNameOf(unnamed).value_or(SchemeString(unnamed));
  }

  Rows Scaled(const Rows& x, std::span<const float> scale) {
    if (scale.empty()) return x;
    scaled_.resize(static_cast<size_t>(x.m * x.k));
    for (int64_t row = 0; row < x.m; ++row) {
      for (int64_t j = 0; j < x.k; ++j)
        scaled_[static_cast<size_t>(row * x.k + j)] =
            x.data[row * x.stride + j] * scale[static_cast<size_t>(j)];
    }
    return {scaled_.data(), x.m, x.k, x.k};
  }

  void AddMagnitudesAfter(const LinearGroup& group, const Rows& x, std::vector<float>* largest) {
    const RowTransforms& transforms = group.layers.front().input_transforms;
    if (transforms.empty()) return RaiseToMagnitudes(x, largest);
    std::vector<float> transformed(static_cast<size_t>(x.m * x.k));
    for (int64_t row = 0; row < x.m; ++row)
      std::copy_n(x.data + row * x.stride, x.k, transformed.data() + row * x.k);
    for (const auto& transform : transforms)
      transform->ApplyInPlace(transformed.data(), x.k, x.m, x.k, context_);
    RaiseToMagnitudes({transformed.data(), x.m, x.k, x.k}, largest);
  }

  const Block& base_;
  const Block& model_;
  const BlockRelation& relation_;
  const Context& context_;
  GroupSums sums_[4];
  std::vector<float> scaled_, base_output_, model_output_;
  QuantizedRows quantized_rows_;
};

// The hidden states of both models, from block to block.
class Walk {
 public:
  Walk(const LoadedModel& base, const LoadedModel& model, std::span<const Window> windows,
       const Context& context)
      : base_(base),
        model_(model),
        context_(context),
        base_forward_(base.model(), context),
        model_forward_(model.model(), context) {
    std::vector<std::vector<TokenId>> samples;
    for (const Window& window : windows) samples.push_back(window.tokens);
    parts_ = CutIntoParts(samples);
  }

  int64_t rows() const {
    return parts_.empty() ? 0 : parts_.back().first_row + parts_.back().batch.rows();
  }

  Status Embed() {
    const int64_t width = base_.model().spec.hidden_size;
    base_hidden_.resize(static_cast<size_t>(rows() * width));
    model_hidden_.resize(base_hidden_.size());
    for (const SamplePart& part : parts_) {
      OCTAVO_RETURN_IF_ERROR(base_forward_.Embed(part.batch, RowsOf(part, &base_hidden_)));
      OCTAVO_RETURN_IF_ERROR(model_forward_.Embed(part.batch, RowsOf(part, &model_hidden_)));
    }
    return OkStatus();
  }

  Status Compare(int64_t index, LayerComparison* comparison) {
    const Model& base = base_.model();
    const Model& model = model_.model();
    OCTAVO_ASSIGN_OR_RETURN(const BlockRelation relation,
                            RelateBlocks(base_, model_, index, context_));
    const auto i = static_cast<size_t>(index);
    BlockComparison layers(base.blocks[i], model.blocks[i], relation, context_);
    base_forward_.set_tap(
        [&](const LinearGroup& group, const Rows& x) { layers.Compare(group, x); });
    ErrorSums alone, accumulated;
    for (const SamplePart& part : parts_) {
      OCTAVO_RETURN_IF_ERROR(context_.CheckCancelled());
      const std::span<float> base_hidden = RowsOf(part, &base_hidden_);
      const std::span<float> model_hidden = RowsOf(part, &model_hidden_);
      std::vector<float> given(base_hidden.begin(), base_hidden.end());
      RunBlock(&base_forward_, base, index, part, base_hidden);
      RunBlock(&model_forward_, model, index, part, given);
      RunBlock(&model_forward_, model, index, part, model_hidden);
      alone += HiddenError(base_hidden, given);
      accumulated += HiddenError(base_hidden, model_hidden);
    }
    base_forward_.set_tap(nullptr);
    layers.Finish(index, &comparison->layers);
    ComparedBlock& block = comparison->blocks.emplace_back();
    block.name = base.blocks[i].name;
    if (relation.rotated) return OkStatus();
    block.alone = alone.Finish();
    block.accumulated = accumulated.Finish();
    return OkStatus();
  }

 private:
  std::span<float> RowsOf(const SamplePart& part, std::vector<float>* hidden) const {
    const auto width = static_cast<size_t>(base_.model().spec.hidden_size);
    return std::span(*hidden).subspan(static_cast<size_t>(part.first_row) * width,
                                      static_cast<size_t>(part.batch.rows()) * width);
  }

  ErrorSums HiddenError(std::span<const float> base, std::span<const float> model) const {
    const int64_t width = base_.model().spec.hidden_size;
    return SumRows({base.data(), width, width}, {model.data(), width, width},
                   std::ssize(base) / width, {}, context_.pool);
  }

  const LoadedModel& base_;
  const LoadedModel& model_;
  const Context& context_;
  Forward base_forward_, model_forward_;
  std::vector<SamplePart> parts_;
  std::vector<float> base_hidden_, model_hidden_;  // [rows, width]
};

void AddNotes(LayerComparison* comparison) {
  const auto count = [&](const auto& is) {
    return std::count_if(comparison->layers.begin(), comparison->layers.end(), is);
  };
  const auto apart = count([](const ComparedLayer& layer) { return !layer.output; });
  const auto online =
      count([](const ComparedLayer& layer) { return layer.output && !layer.weight_sqnr_db; });
  if (apart > 0) {
    comparison->notes.push_back(fmt::format(
        "{} layers read or give what was rotated for good (SpinQuant): their outputs and weights "
        "cannot be set beside the original's",
        apart));
  }
  if (online > 0) {
    comparison->notes.push_back(fmt::format(
        "{} layers have transforms that are applied while the model runs: their weights "
        "are stored between these and not compared",
        online));
  }
}

}  // namespace

Result<LayerComparison> CompareLayers(const LoadedModel& base, const LoadedModel& model,
                                      std::span<const Window> windows, const Context& context) {
  OCTAVO_RETURN_IF_ERROR(CheckSameSizes(base.model(), model.model()));
  Walk walk(base, model, windows, context);
  LayerComparison comparison;
  comparison.positions = walk.rows();
  OCTAVO_RETURN_IF_ERROR(walk.Embed());
  const int64_t blocks = base.model().spec.num_layers;
  context.progress.Start("layers", blocks);
  for (int64_t i = 0; i < blocks; ++i) {
    OCTAVO_RETURN_IF_ERROR(walk.Compare(i, &comparison));
    context.progress.Advance(1, fmt::format("block {} of {}", i + 1, blocks));
  }
  context.progress.Finish();
  AddNotes(&comparison);
  return comparison;
}

}  // namespace octavo
