#include "quant/transformed_linear.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace octavo {

namespace {

std::string DescribeTransforms(std::string_view place, const RowTransforms& transforms) {
  std::string text;
  for (const auto& transform : transforms) {
    text += fmt::format(", {} times {} of {}", place,
                        transform->is_fast() ? "Hadamard blocks" : "matrices", transform->size());
  }
  return text;
}

class TransformedLinear final : public PreparedLinear {
 public:
  TransformedLinear(std::unique_ptr<PreparedLinear> linear, std::span<const LinearLayer> layers)
      : linear_(std::move(linear)),
        input_(layers.front().input_transforms),
        output_(layers.front().output_transforms) {
    for (const LinearLayer& layer : layers) columns_.push_back(layer.n);
  }

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const override {
    if (input_.empty()) return linear_->QuantizeRows(x, rows, context);
    rows->transformed.resize(static_cast<size_t>(x.m * x.k));
    float* to = rows->transformed.data();
    input_.front()->Apply(x.data, x.stride, x.m, x.k, to, x.k, context);
    for (size_t i = 1; i < input_.size(); ++i) input_[i]->ApplyInPlace(to, x.k, x.m, x.k, context);
    linear_->QuantizeRows({to, x.m, x.k, x.k}, rows, context);
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    linear_->Multiply(rows, y, stride, context);
    for (const auto& transform : output_) {
      int64_t first = 0;
      for (const int64_t n : columns_) {
        transform->ApplyInPlace(y + first, stride, rows.source.m, n, context);
        first += n;
      }
    }
  }

  std::string Describe() const override {
    return linear_->Describe() + DescribeTransforms("input", input_) +
           DescribeTransforms("output", output_);
  }
  int64_t owned_bytes() const override { return linear_->owned_bytes(); }
  bool reads_file() const override { return linear_->reads_file(); }

 private:
  std::unique_ptr<PreparedLinear> linear_;
  RowTransforms input_;
  RowTransforms output_;
  std::vector<int64_t> columns_;  // of each layer
};

}  // namespace

bool SameTransforms(const LinearLayer& a, const LinearLayer& b) {
  return a.input_transforms == b.input_transforms && a.output_transforms == b.output_transforms;
}

std::unique_ptr<PreparedLinear> WithTransforms(std::unique_ptr<PreparedLinear> linear,
                                               std::span<const LinearLayer> layers) {
  const LinearLayer& first = layers.front();
  if (first.input_transforms.empty() && first.output_transforms.empty()) return linear;
  return std::make_unique<TransformedLinear>(std::move(linear), layers);
}

}  // namespace octavo
