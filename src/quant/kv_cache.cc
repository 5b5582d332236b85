#include "quant/kv_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

// A q_scale outside of this was never calibrated: it turns queries of any size that models have
// into zeros or into the largest code.
constexpr float kSmallestCredibleScale = 1e-7F;
constexpr float kLargestCredibleScale = 1e4F;

int8_t Int8Code(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<int8_t>(std::nearbyint(std::clamp(value, -128.0F, 127.0F)));
}

class ScaleReader {
 public:
  ScaleReader(const Checkpoint& checkpoint, AttentionScales* found)
      : checkpoint_(checkpoint), found_(found) {}

  // The first of `names` that the file has, as floats; empty when there is none. All that are there
  // count as read.
  Result<std::vector<float>> First(const std::vector<std::string>& names, int64_t heads) {
    std::vector<float> scales;
    for (const std::string& name : names) {
      if (!checkpoint_.Contains(name)) continue;
      found_->tensors.push_back(name);
      if (!scales.empty()) continue;
      OCTAVO_ASSIGN_OR_RETURN(scales, Read(name, heads));
    }
    return scales;
  }

  // Zero points are those of symmetric codes: engines load them and throw them away.
  void Ignore(const std::string& name) {
    if (checkpoint_.Contains(name)) found_->tensors.push_back(name);
  }

 private:
  Result<std::vector<float>> Read(const std::string& name, int64_t heads) const {
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint_.Find(name));
    if (view.elements() != 1 && view.elements() != heads) {
      return InvalidArgument(
          fmt::format("{}: shape {}, expected one scale or one for each of {} "
                      "heads ([{}, 1, 1])",
                      name, ShapeString(view.shape), heads, heads));
    }
    std::vector<float> scales(static_cast<size_t>(view.elements()));
    const Status status = ToFloat(view, scales);
    if (!status.ok()) return status.Annotate(name);
    return scales;
  }

  const Checkpoint& checkpoint_;
  AttentionScales* found_;
};

Status CheckPositive(const std::vector<std::string>& names, const std::vector<float>& scales) {
  for (const float scale : scales) {
    if (std::isfinite(scale) && scale > 0) continue;
    return InvalidArgument(
        fmt::format("{} is {}, expected a positive number; the cache cannot be "
                    "quantized with it: calibrate again",
                    names.front(), scale));
  }
  return OkStatus();
}

// Keys' or values' scales by all the names that files have for them, newest first; those of engines
// and of a single kv_scale last.
std::vector<std::string> CacheScaleNames(std::string_view module, std::string_view projection,
                                         char letter) {
  return {fmt::format("{}.{}_scale", module, letter),
          fmt::format("{}.attn.{}_scale", module, letter),
          fmt::format("{}.{}_scale", projection, letter),
          fmt::format("{}.output_scale", projection),
          fmt::format("{}.kv_scale", module),
          fmt::format("{}.attn.kv_scale", module)};
}

Status ReadCache(const AttentionShapeInFile& shape, const QuantizationArgs& args,
                 ScaleReader* reader, AttentionScales* found) {
  const auto key_names = CacheScaleNames(shape.module, shape.k_proj, 'k');
  const auto value_names = CacheScaleNames(shape.module, shape.v_proj, 'v');
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> keys, reader->First(key_names, shape.kv_heads));
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> values, reader->First(value_names, shape.kv_heads));
  if (keys.empty() || values.empty()) {
    const std::string missing = keys.empty() && values.empty() ? "k_scale and v_scale"
                                : keys.empty()                 ? "k_scale"
                                                               : "v_scale";
    const std::string_view taken = keys.empty() && values.empty() ? "1 is" : "the other one is";
    found->warnings.push_back(fmt::format("{}: no {}, though kv_cache_scheme asks for it; {} taken",
                                          shape.module, missing, taken));
  }
  if (keys.empty()) keys = values.empty() ? std::vector<float>{1.0F} : values;
  if (values.empty()) values = keys;
  OCTAVO_RETURN_IF_ERROR(CheckPositive(key_names, keys));
  OCTAVO_RETURN_IF_ERROR(CheckPositive(value_names, values));
  for (const std::string_view name : {"k_zero_point", "v_zero_point"})
    reader->Ignore(fmt::format("{}.{}", shape.module, name));
  for (const std::string_view projection : {shape.k_proj, shape.v_proj})
    reader->Ignore(fmt::format("{}.output_zero_point", projection));
  const auto heads = static_cast<size_t>(shape.kv_heads);
  if (keys.size() == 1) keys.assign(heads, keys.front());
  if (values.size() == 1) values.assign(heads, values.front());
  found->cache = KvCodec(AttentionCodes(args), std::move(keys), std::move(values));
  return OkStatus();
}

Status ReadQuery(const AttentionShapeInFile& shape, ScaleReader* reader, AttentionScales* found) {
  const std::string name = fmt::format("{}.q_scale", shape.module);
  OCTAVO_ASSIGN_OR_RETURN(
      std::vector<float> scales,
      reader->First({name, fmt::format("{}.attn.q_scale", shape.module)}, shape.heads));
  reader->Ignore(fmt::format("{}.q_zero_point", shape.module));
  if (scales.empty()) {
    found->warnings.push_back(fmt::format("{} is missing; queries are not rounded", name));
    return OkStatus();
  }
  for (const float scale : scales) {
    if (scale >= kSmallestCredibleScale && scale <= kLargestCredibleScale) continue;
    found->warnings.push_back(fmt::format(
        "{} is {}, which no calibration gives (llm-compressor saves it uninitialised); queries are "
        "not rounded",
        name, scale));
    return OkStatus();
  }
  found->query = std::move(scales);
  return OkStatus();
}

}  // namespace

void EncodeRow(const float* x, int64_t count, float scale, DType dtype, std::byte* codes) {
  OCTAVO_CHECK(dtype == DType::kF8E4M3 || dtype == DType::kI8) << DTypeName(dtype);
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i] / scale;
    codes[i] = dtype == DType::kI8 ? static_cast<std::byte>(Int8Code(value))
                                   : static_cast<std::byte>(E4M3FromFloat(value));
  }
}

DType AttentionCodes(const QuantizationArgs& args) {
  return args.type == QuantizationType::kFloat ? DType::kF8E4M3 : DType::kI8;
}

std::vector<DeclaredTensor> DeclareAttentionScales(const AttentionShapeInFile& shape,
                                                   const QuantizationArgs& cache,
                                                   const QuantizationArgs* query,
                                                   DType scale_dtype) {
  const auto shape_of = [](const QuantizationArgs& args, int64_t heads) {
    return args.strategy == Strategy::kAttnHead ? Shape{heads, 1, 1} : Shape{1};
  };
  const Shape kept = shape_of(cache, shape.kv_heads);
  std::vector<DeclaredTensor> tensors = {{"k_scale", {scale_dtype}, {kept}},
                                         {"v_scale", {scale_dtype}, {kept}}};
  if (query == nullptr) return tensors;
  const Shape asked = shape_of(*query, shape.heads);
  tensors.push_back({"q_scale", {scale_dtype}, {asked}});
  tensors.push_back({"k_zero_point", {AttentionCodes(cache)}, {kept}});
  tensors.push_back({"v_zero_point", {AttentionCodes(cache)}, {kept}});
  tensors.push_back({"q_zero_point", {AttentionCodes(*query)}, {asked}});
  return tensors;
}

std::string WhyUnsupportedForAttention(const QuantizationArgs& args) {
  if (args.num_bits != 8) return fmt::format("{} bits are not supported, 8 are", args.num_bits);
  if (!args.symmetric) return "zero points (symmetric: false) are not supported";
  if (args.dynamic != Dynamic::kFalse)
    return "scales that are found while the model runs (dynamic) are not supported";
  if (args.strategy != Strategy::kTensor && args.strategy != Strategy::kAttnHead)
    return fmt::format("strategy {} is not supported, tensor and attn_head are",
                       StrategyName(args.strategy));
  return "";
}

Result<AttentionScales> ReadAttentionScales(const Checkpoint& checkpoint,
                                            const AttentionShapeInFile& shape,
                                            const QuantizationArgs* cache,
                                            const QuantizationArgs* query) {
  AttentionScales found;
  ScaleReader reader(checkpoint, &found);
  if (cache != nullptr) OCTAVO_RETURN_IF_ERROR(ReadCache(shape, *cache, &reader, &found));
  if (query != nullptr) OCTAVO_RETURN_IF_ERROR(ReadQuery(shape, &reader, &found));
  return found;
}

}  // namespace octavo
