#include "compress/attention_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compress/calibration.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

// Of which the error of rounding is measured.
constexpr int64_t kMeasuredRows = 1024;

const QuantizationArgs* QueryArgs(const Block& block) {
  return block.query_quantization ? &*block.query_quantization->input_activations : nullptr;
}

float Decode(std::byte code, DType dtype) {
  return dtype == DType::kI8 ? static_cast<float>(static_cast<int8_t>(code))
                             : FloatFromE4M3(static_cast<uint8_t>(code));
}

// One scale for each of `heads`, of which there may be only one.
std::vector<float> OfEachHead(const std::vector<float>& scales, int64_t heads) {
  if (scales.size() != 1) return scales;
  return std::vector<float>(static_cast<size_t>(heads), scales.front());
}

}  // namespace

std::vector<DeclaredTensor> DeclareAttentionScales(const Block& block, const ModelSpec& spec) {
  if (!block.cache_quantization) return {};
  return DeclareAttentionScales(AttentionInFile(block, spec), *block.cache_quantization,
                                QueryArgs(block), spec.dtype);
}

// ---- one of queries, keys and values -----------------------------------------------------------

Result<HeadsObserver> HeadsObserver::Make(const QuantizationArgs& args, int64_t heads,
                                          DType scale_dtype) {
  HeadsObserver observer;
  observer.codes_ = AttentionCodes(args);
  observer.heads_ = heads;
  const int64_t count = args.strategy == Strategy::kAttnHead ? heads : 1;
  for (int64_t i = 0; i < count; ++i) {
    OCTAVO_ASSIGN_OR_RETURN(ActivationObserver one, ActivationObserver::Make(args, scale_dtype));
    observer.observers_.push_back(std::move(one));
  }
  return observer;
}

Status HeadsObserver::Observe(const Rows& x) {
  width_ = x.k;
  for (int64_t row = 0; row < x.m && std::ssize(first_rows_) < kMeasuredRows * x.k; ++row) {
    const float* from = x.data + row * x.stride;
    first_rows_.insert(first_rows_.end(), from, from + x.k);
  }
  const int64_t part = x.k / std::ssize(observers_);
  const float* data = x.data;
  for (ActivationObserver& observer : observers_) {
    OCTAVO_RETURN_IF_ERROR(observer.Observe({data, x.m, part, x.stride}));
    data += part;
  }
  return OkStatus();
}

Result<std::vector<float>> HeadsObserver::Scales() const {
  std::vector<float> scales;
  for (const ActivationObserver& observer : observers_) {
    OCTAVO_ASSIGN_OR_RETURN(const ScaleAndZeroPoint found, observer.Scales());
    OCTAVO_ASSIGN_OR_RETURN(const Tensor values, ToFloatTensor(found.scale.view()));
    scales.push_back(values.data<float>()[0]);
  }
  return scales;
}

double HeadsObserver::Error(std::span<const float> scales) const {
  const int64_t head_dim = width_ / heads_;
  std::vector<std::byte> codes(static_cast<size_t>(head_dim));
  double error = 0;
  double energy = 0;
  for (int64_t first = 0; first < std::ssize(first_rows_); first += head_dim) {
    const int64_t head = first / head_dim % heads_;
    const float scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(head)];
    const float* x = first_rows_.data() + first;
    EncodeRow(x, head_dim, scale, codes_, codes.data());
    for (int64_t i = 0; i < head_dim; ++i) {
      const double value = static_cast<double>(x[i]);
      const double lost =
          value - static_cast<double>(Decode(codes[static_cast<size_t>(i)], codes_) * scale);
      error += lost * lost;
      energy += value * value;
    }
  }
  return energy > 0 ? error / energy : 0;
}

// ---- a block's ---------------------------------------------------------------------------------

Result<AttentionObserver> AttentionObserver::Make(const Block& block, const ModelSpec& spec) {
  AttentionObserver observer(block.attention);
  const auto add = [&](const QuantizationArgs& args, int64_t heads) -> Status {
    auto made = HeadsObserver::Make(args, heads, spec.dtype);
    if (!made.ok()) return made.status().Annotate(block.attention);
    observer.observers_.push_back(*std::move(made));
    return OkStatus();
  };
  for (int i = 0; i < 2; ++i)
    OCTAVO_RETURN_IF_ERROR(add(*block.cache_quantization, spec.num_kv_heads));
  if (const QuantizationArgs* query = QueryArgs(block))
    OCTAVO_RETURN_IF_ERROR(add(*query, spec.num_heads));
  return observer;
}

Status AttentionObserver::Observe(const AttentionRows& rows, std::span<const int32_t> sequence) {
  const Rows* all[] = {&rows.keys, &rows.values, &rows.queries};
  for (size_t i = 0; i < observers_.size(); ++i) {
    OCTAVO_RETURN_IF_ERROR(ForEachSample(*all[i], sequence, [&](const Rows& sample) {
                             return observers_[i].Observe(sample);
                           }).Annotate(module_));
  }
  return OkStatus();
}

Result<AttentionReport> AttentionObserver::Report() const {
  AttentionReport report;
  report.name = module_;
  std::vector<float>* scales[] = {&report.key_scales, &report.value_scales, &report.query_scales};
  double* errors[] = {&report.key_error, &report.value_error, &report.query_error};
  for (size_t i = 0; i < observers_.size(); ++i) {
    auto found = observers_[i].Scales();
    if (!found.ok()) return found.status().Annotate(module_);
    *scales[i] = *std::move(found);
    *errors[i] = observers_[i].Error(*scales[i]);
  }
  return report;
}

Result<LayerTensors> PackAttentionScales(const AttentionReport& report, const Block& block,
                                         const ModelSpec& spec) {
  LayerTensors tensors;
  for (const DeclaredTensor& declared : DeclareAttentionScales(block, spec)) {
    const DType dtype = declared.dtypes.front();
    const Shape& shape = declared.shapes.front();
    if (!declared.suffix.ends_with("_scale")) {
      tensors[declared.suffix] = Tensor::Zeros(dtype, shape);
      continue;
    }
    const std::vector<float>& scales = declared.suffix == "k_scale"   ? report.key_scales
                                       : declared.suffix == "v_scale" ? report.value_scales
                                                                      : report.query_scales;
    OCTAVO_ASSIGN_OR_RETURN(tensors[declared.suffix], FromFloat(scales, dtype, shape));
  }
  return tensors;
}

void UseAttentionScales(const AttentionReport& report, const ModelSpec& spec, Block* block) {
  block->cache = KvCodec(AttentionCodes(*block->cache_quantization),
                         OfEachHead(report.key_scales, spec.num_kv_heads),
                         OfEachHead(report.value_scales, spec.num_kv_heads));
  block->query_scales = report.query_scales;
}

}  // namespace octavo
