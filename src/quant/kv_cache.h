// The cache of keys and values as codes: what a checkpoint declares, where it has the scales, and
// how rows become codes (inference-schemes 4; checkpoint-format 6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/checkpoint.h"
#include "quant/args.h"
#include "quant/scheme.h"
#include "tensor/dtype.h"

namespace octavo {

// How keys and values are kept: as floats (F32 or BF16, rounded to nearest even), or as codes of a
// byte (F8_E4M3 or I8) with a scale for each kv head.
struct KvCodec {
  KvCodec(DType floats = DType::kF32)  // NOLINT(google-explicit-constructor): a float type is one
      : dtype(floats) {}
  KvCodec(DType codes, std::vector<float> key_scales_, std::vector<float> value_scales_)
      : dtype(codes), key_scales(std::move(key_scales_)), value_scales(std::move(value_scales_)) {}

  DType dtype;
  std::vector<float> key_scales;    // [kv_heads], positive; empty: floats
  std::vector<float> value_scales;  // likewise

  bool has_codes() const { return !key_scales.empty(); }
};

// Codes round(x / scale), ties to even, saturated to those of `dtype`. NaN stays NaN in F8_E4M3; I8
// has none, and 0 stands for it.
void EncodeRow(const float* x, int64_t count, float scale, DType dtype, std::byte* codes);

// The scales of attention that a checkpoint has for one module.
struct AttentionScales {
  std::optional<KvCodec> cache;             // none: nothing declared
  std::optional<std::vector<float>> query;  // [1] or [heads]; none: queries stay floats
  std::vector<std::string> tensors;         // names of all that were read, or may be left unread
  std::vector<std::string> warnings;
};

struct AttentionShapeInFile {
  std::string_view module;  // "model.layers.0.self_attn"
  std::string_view k_proj;  // where older files have the scales
  std::string_view v_proj;
  int64_t heads = 0;
  int64_t kv_heads = 0;
};

// The scales of one module's attention on disk, under `shape.module`: [1], or [heads, 1, 1] of
// strategy attn_head, in `scale_dtype`; where queries are quantized (`query` is not null) theirs
// too, and the zero points that the library writes then, which are zero. What is written, that is:
// ReadAttentionScales takes more.
std::vector<DeclaredTensor> DeclareAttentionScales(const AttentionShapeInFile& shape,
                                                   const QuantizationArgs& cache,
                                                   const QuantizationArgs* query,
                                                   DType scale_dtype);

// The dtype of the codes of keys and values, F8_E4M3 or I8.
DType AttentionCodes(const QuantizationArgs& args);

// What keeps keys and values, or queries, from being rounded as `args` says: "dynamic", "4-bit
// int"; empty when nothing does.
std::string WhyUnsupportedForAttention(const QuantizationArgs& args);

// Reads k_scale and v_scale as `cache` declares them (null: no codes), and q_scale as `query` does.
// A scale that is missing is 1, with a warning; one of two missing is the other; a q_scale that is
// missing, or not credible (checkpoint-format 6), leaves queries as they are, with a warning.
// InvalidArgument names a tensor of a wrong shape or dtype, or a scale that is not positive and
// finite.
Result<AttentionScales> ReadAttentionScales(const Checkpoint& checkpoint,
                                            const AttentionShapeInFile& shape,
                                            const QuantizationArgs* cache,
                                            const QuantizationArgs* query);

}  // namespace octavo
