#include "convert/gguf_rope.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "convert/gguf_blocks.h"
#include "convert/gguf_metadata.h"

namespace octavo {

namespace {

// Llama 3.1 to 3.3; `factor` alone differs between them.
constexpr double kLowFreqFactor = 1;
constexpr double kHighFreqFactor = 4;
constexpr double kOriginalPositions = 8192;

// What divides frequency i (transformers' _compute_llama3_parameters): 1 for short waves, `factor`
// for long ones, and between them as the number of waves in the original context says.
double Llama3Divisor(const GgufRope& rope, double factor, int64_t i) {
  const double exponent = 2 * static_cast<double>(i) / static_cast<double>(rope.head_dim);
  const double wavelength = 2 * std::numbers::pi * std::pow(rope.theta, exponent);
  const double waves = kOriginalPositions / wavelength;
  if (waves > kHighFreqFactor) return 1;
  if (waves < kLowFreqFactor) return factor;
  const double smooth = (waves - kLowFreqFactor) / (kHighFreqFactor - kLowFreqFactor);
  return 1 / ((1 - smooth) / factor + smooth);
}

Result<Value> Llama3Scaling(const GgufRope& rope, const GgufTensor& freqs) {
  constexpr double kTolerance = 1e-3;
  Result<const GgufBlockDecoder*> decoder = FindGgufBlockDecoder(*freqs.type);
  if (!decoder.ok()) return decoder.status().Annotate("tensor " + freqs.name);
  std::vector<float> divisors(static_cast<size_t>(rope.head_dim / 2));
  DecodeGgufBlocks(*freqs.type, **decoder, freqs.bytes, divisors);
  const double factor = DecimalOfFloat(static_cast<double>(divisors.back()));
  for (int64_t i = 0; i < rope.head_dim / 2; ++i) {
    const auto found = static_cast<double>(divisors[static_cast<size_t>(i)]);
    const double expected = Llama3Divisor(rope, factor, i);
    if (std::abs(found - expected) <= kTolerance * expected) continue;
    return Unsupported(
        fmt::format("tensor {}: element {} is {}, but rotary scaling as in Llama 3 with factor {} "
                    "has {}; other scalings that are stored as a tensor are not imported",
                    freqs.name, i, found, factor, expected));
  }
  return Value(Value::Object{
      {"rope_type", "llama3"},
      {"factor", factor},
      {"low_freq_factor", kLowFreqFactor},
      {"high_freq_factor", kHighFreqFactor},
      {"original_max_position_embeddings", static_cast<int64_t>(kOriginalPositions)},
  });
}

// A key that only changes what the model computes where it is not `neutral`.
Status RefuseUnless(const Value& metadata, const std::string& key, double neutral) {
  OCTAVO_ASSIGN_OR_RETURN(const double value, metadata.GetDouble(key, neutral));
  if (value == neutral) return OkStatus();
  return Unsupported(fmt::format("{} is {}, only {} is imported", key, value, neutral));
}

Result<Value> YarnScaling(const Value& metadata, const std::string& prefix, double factor) {
  Value scaling = Value::Object{{"rope_type", "yarn"}, {"factor", factor}};
  OCTAVO_ASSIGN_OR_RETURN(const int64_t original,
                          RequireSize(metadata, prefix + "original_context_length"));
  scaling.Set("original_max_position_embeddings", original);
  OCTAVO_RETURN_IF_ERROR(RefuseUnless(metadata, prefix + "attn_factor", 1));
  OCTAVO_RETURN_IF_ERROR(RefuseUnless(metadata, prefix + "yarn_attn_factor", 1));
  OCTAVO_RETURN_IF_ERROR(RefuseUnless(metadata, prefix + "yarn_ext_factor", 1));
  OCTAVO_RETURN_IF_ERROR(RefuseUnless(metadata, prefix + "yarn_log_multiplier", 0));
  for (const char* beta : {"beta_fast", "beta_slow"}) {
    const std::string key = prefix + "yarn_" + beta;
    if (metadata.Find(key) == nullptr) continue;
    OCTAVO_ASSIGN_OR_RETURN(const double value, metadata.GetDouble(key, 0));
    scaling.Set(beta, DecimalOfFloat(value));
  }
  return scaling;
}

}  // namespace

double DecimalOfFloat(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value));
  double decimal = value;
  std::from_chars(text.data(), end.ptr, decimal);
  return decimal;
}

Result<Value> ReadRopeScaling(const Value& metadata, std::string_view architecture,
                              const GgufRope& rope, const GgufTensor* freqs) {
  const std::string prefix = std::string(architecture) + ".rope.scaling.";
  OCTAVO_ASSIGN_OR_RETURN(const std::string type, metadata.GetString(prefix + "type", "none"));
  if (freqs != nullptr) {
    if (type == "none") return Llama3Scaling(rope, *freqs);
    return Unsupported("tensor " + freqs->name + " beside " + prefix + "type " + type);
  }
  if (type == "none") return Value();
  OCTAVO_ASSIGN_OR_RETURN(const double stored, metadata.GetDouble(prefix + "factor", 1.0));
  const double factor = DecimalOfFloat(stored);
  if (!(factor >= 1) || !std::isfinite(factor)) {
    return CorruptFile(fmt::format("{}factor is {}, expected 1 or more", prefix, factor));
  }
  if (type == "linear") return Value(Value::Object{{"rope_type", "linear"}, {"factor", factor}});
  if (type == "yarn") return YarnScaling(metadata, prefix, factor);
  return Unsupported(prefix + "type is " + type + ", only none, linear and yarn are imported");
}

}  // namespace octavo
