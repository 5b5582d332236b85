#include "quant/schemes/coded_linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "quant/bit_packing.h"
#include "quant/scale_grid.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"

namespace octavo {

namespace {

int64_t OwnedBytes(const CodedWeight& weight) {
  int64_t bytes = 0;
  for (const Tensor& tensor : weight.owned) bytes += tensor.num_bytes();
  return bytes;
}

class CodedLinear : public PreparedLinear {
 public:
  CodedLinear(std::string description, std::vector<CodedWeight> weights, std::vector<float> bias,
              std::optional<RowRounding> rounding)
      : description_(std::move(description)),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        rounding_(rounding) {}

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const override {
    rows->source = x;
    const std::vector<int64_t>& order = weights_.front().column_order;
    if (!rounding_ && order.empty()) return;
    rows->values.resize(static_cast<size_t>(x.m * x.k));
    float* values = rows->values.data();
    if (rounding_) {
      rows->scales.resize(static_cast<size_t>(x.m * rounding_->groups(x.k)));
      RoundRows(x.data, x.stride, x.m, x.k, *rounding_, values, rows->scales.data(), context.isa,
                context.pool);
      rows->source = {.data = values, .m = x.m, .k = x.k, .stride = x.k};
    }
    if (!order.empty()) Reorder(order, rows);
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    const Rows& x = rows.source;
    int64_t column = 0;
    for (const CodedWeight& weight : weights_) {
      const int64_t n = weight.matrix.n;
      std::span<const float> bias(bias_);
      if (!bias.empty()) bias = bias.subspan(static_cast<size_t>(column), static_cast<size_t>(n));
      MultiplyCoded(weight.matrix, bias, x.data, x.stride, x.m, y + column, stride, context.isa,
                    context.pool);
      column += n;
    }
  }

  std::string Describe() const override { return description_; }

  int64_t owned_bytes() const override {
    auto bytes = static_cast<int64_t>(bias_.size() * sizeof(float));
    for (const CodedWeight& weight : weights_) bytes += OwnedBytes(weight);
    return bytes;
  }

  bool reads_file() const override { return true; }

 private:
  // values[i] <- source[order[i]], row by row.
  static void Reorder(const std::vector<int64_t>& order, QuantizedRows* rows) {
    const Rows& x = rows->source;
    std::vector<float> row(order.size());
    for (int64_t i = 0; i < x.m; ++i) {
      const float* in = x.data + i * x.stride;
      for (size_t j = 0; j < order.size(); ++j) row[j] = in[order[j]];
      std::copy(row.begin(), row.end(), rows->values.begin() + i * x.k);
    }
    rows->source = {.data = rows->values.data(), .m = x.m, .k = x.k, .stride = x.k};
  }

  std::string description_;
  std::vector<CodedWeight> weights_;
  std::vector<float> bias_;
  std::optional<RowRounding> rounding_;
};

class CodedTable : public RowTable {
 public:
  CodedTable(CodedWeight weight, Isa isa) : weight_(std::move(weight)), isa_(isa) {}

  void Read(int64_t index, float* out) const override {
    DecodeRow(weight_.matrix, index, out, isa_);
  }

  int64_t owned_bytes() const override { return OwnedBytes(weight_); }

 private:
  CodedWeight weight_;
  Isa isa_;
};

}  // namespace

Result<std::unique_ptr<PreparedLinear>> PrepareCoded(std::string name, ReadCodedWeight* read,
                                                     std::span<const LinearLayer> layers,
                                                     std::span<const LayerViews> tensors,
                                                     const PrepareOptions& options,
                                                     const Context&) {
  std::vector<CodedWeight> weights;
  for (size_t i = 0; i < layers.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(CodedWeight weight, read(layers[i], tensors[i]));
    if (i > 0 && weight.column_order != weights.front().column_order) {
      return InvalidArgument(fmt::format(
          "{} and {} share their input, but order its columns differently (weight_g_idx)",
          layers[0].name, layers[i].name));
    }
    weights.push_back(std::move(weight));
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> bias, StackBiases(layers, tensors));
  OCTAVO_ASSIGN_OR_RETURN(const std::optional<RowRounding> rounding,
                          RoundingOfInput(layers[0], tensors[0], options.activation_rule));
  const QuantizationScheme& declared = layers[0].quantization;
  std::string description = fmt::format("{}: {} weights, {}", name, TypeString(*declared.weights),
                                        DescribeInput(declared.input_activations));
  return std::unique_ptr<PreparedLinear>(std::make_unique<CodedLinear>(
      std::move(description), std::move(weights), std::move(bias), rounding));
}

Result<std::unique_ptr<RowTable>> PrepareCodedTable(ReadCodedWeight* read, const LinearLayer& layer,
                                                    const LayerViews& tensors,
                                                    const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(CodedWeight weight, read(layer, tensors));
  if (!weight.column_order.empty()) {
    return Unsupported(
        layer.name +
        ": an embedding with columns ordered by group (weight_g_idx) is not supported");
  }
  return std::unique_ptr<RowTable>(std::make_unique<CodedTable>(std::move(weight), context.isa));
}

Status ReadScales(const LinearLayer& layer, const TensorView& scales, CodedWeight* weight) {
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid,
                          MakeScaleGrid(*layer.quantization.weights, layer.n, layer.k));
  CodedMatrix& matrix = weight->matrix;
  matrix.n = layer.n;
  matrix.k = layer.k;
  matrix.unit_rows = grid.unit_rows;
  matrix.unit_columns = grid.unit_columns;
  matrix.scale_columns = grid.columns;
  matrix.scales = scales.bytes;
  OCTAVO_ASSIGN_OR_RETURN(Tensor wide, ScalesAsFloat(layer, scales));
  switch (scales.dtype) {
    case DType::kF8E4M3:
      matrix.scale_format = ScaleFormat::kE4M3;
      break;
    case DType::kU8:
    case DType::kF8E8M0:
      matrix.scale_format = ScaleFormat::kE8M0;
      break;
    case DType::kBF16:
      matrix.scale_format = ScaleFormat::kBf16;
      break;
    default:
      matrix.scale_format = ScaleFormat::kF32;
      matrix.scales = wide.view().bytes;
      weight->owned.push_back(std::move(wide));
  }
  return OkStatus();
}

void SetZeroPoints(Tensor zero_points, CodedWeight* weight) {
  weight->matrix.zero_points = zero_points.data<int8_t>().data();
  weight->owned.push_back(std::move(zero_points));
}

void SetIntegerCodes(const TensorView& codes, int bits, CodedWeight* weight) {
  CodedMatrix& matrix = weight->matrix;
  if (bits > 4) {
    matrix.format = CodeFormat::kInt8;
    matrix.row_bytes = codes.shape[1];
    weight->owned.push_back(Tensor::CopyOf(codes));
  } else {
    matrix.format = CodeFormat::kNibble;
    matrix.table = Int4Table();
    weight->owned.push_back(PackRows(codes, 4));
    matrix.row_bytes = weight->owned.back().dim(1) * 4;
  }
  matrix.codes = reinterpret_cast<const uint8_t*>(weight->owned.back().view().bytes);
}

Status CheckE4M3(const LinearLayer& layer, const TensorView& codes) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(codes.bytes);
  int found = 0;
  for (int64_t i = 0; i < codes.elements(); ++i)
    found |= static_cast<int>((bytes[i] & 0x7FU) == 0x7FU);
  if (found == 0) return OkStatus();
  return InvalidArgument(layer.name + ".weight holds NaN; the checkpoint is damaged");
}

Status SetE4M3Codes(const LinearLayer& layer, const TensorView& codes, CodedWeight* weight) {
  OCTAVO_RETURN_IF_ERROR(CheckE4M3(layer, codes));
  weight->matrix.format = CodeFormat::kE4M3;
  weight->matrix.codes = reinterpret_cast<const uint8_t*>(codes.bytes);
  weight->matrix.row_bytes = codes.shape[1];
  return OkStatus();
}

std::array<float, 16> Int4Table() {
  std::array<float, 16> table;
  for (size_t code = 0; code < table.size(); ++code) table[code] = static_cast<float>(code) - 8;
  return table;
}

}  // namespace octavo
