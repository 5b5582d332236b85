// QuantizationArgs and its owners: what a config says of one tensor and of one layer
// (checkpoint-format 1.3, 1.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "tensor/dtype.h"

namespace octavo {

enum class QuantizationType : uint8_t { kInt, kFloat };
enum class Strategy : uint8_t {
  kTensor,
  kChannel,
  kGroup,
  kBlock,
  kToken,
  kTensorGroup,
  kAttnHead
};
enum class Dynamic : uint8_t { kFalse, kTrue, kLocal };
enum class ActOrder : uint8_t { kNone, kWeight, kGroup };

std::string_view StrategyName(Strategy strategy);

// One tensor's quantization. Parse applies the rules R1..R12 and R17 of the format; ToValue writes
// all twelve keys as the library does.
struct QuantizationArgs {
  int num_bits = 8;
  QuantizationType type = QuantizationType::kInt;
  bool symmetric = true;
  std::optional<int64_t> group_size;
  Strategy strategy = Strategy::kTensor;
  std::optional<std::pair<int64_t, int64_t>> block_structure;  // rows, columns
  Dynamic dynamic = Dynamic::kFalse;
  ActOrder actorder = ActOrder::kNone;
  std::string actorder_spelling;  // "weight" and "static" mean the same and are kept as written
  std::optional<std::string> scale_dtype;  // "torch.float8_e4m3fn"
  std::optional<std::string> zp_dtype;     // present exactly when asymmetric
  std::optional<std::string> observer;
  Value observer_kwargs = Value::MakeObject();

  friend bool operator==(const QuantizationArgs&, const QuantizationArgs&) = default;

  // "8-bit int, channel, symmetric, static", for messages.
  std::string ToString() const;
};

// `where` names the place in messages ("config_groups.group_0.weights").
Result<QuantizationArgs> ParseQuantizationArgs(const Value& json, std::string_view where);
Value ToValue(const QuantizationArgs& args);

// What is declared for one layer. No weights: not quantized.
struct QuantizationScheme {
  std::vector<std::string> targets;
  std::optional<QuantizationArgs> weights;
  std::optional<QuantizationArgs> input_activations;
  std::optional<QuantizationArgs> output_activations;
  std::optional<std::string> format;

  friend bool operator==(const QuantizationScheme&, const QuantizationScheme&) = default;
};

// A scheme object of config_groups, rules R13..R15. `targets` is required.
Result<QuantizationScheme> ParseQuantizationScheme(const Value& json, std::string_view where);
Value ToValue(const QuantizationScheme& scheme);

// Whether both compute the same: equal but for the targets and for what only calibration or the
// packing on disk reads (observers, activation order).
bool SameQuantization(const QuantizationScheme& a, const QuantizationScheme& b);

// "weights: ..., input: ..., output: ..., format: ...", for messages.
std::string SchemeString(const QuantizationScheme& scheme);

// Names the observers that nothing named, as the library does before saving (R10): weights
// memoryless_minmax, static and local activations static_minmax (the library's minmax stays near
// the first batch), dynamic ones none.
void FillDefaultObservers(QuantizationScheme* scheme);

// A preset by name, upper- or lower-case ("W8A8"); NotFound names the nearest.
Result<QuantizationScheme> PresetScheme(std::string_view name, std::vector<std::string> targets);
std::vector<std::string> PresetNames();
// The first preset that computes what the scheme declares, observers apart; none for another.
std::optional<std::string> PresetNameOf(const QuantizationScheme& scheme);

// Every storage format a scheme may name.
std::vector<std::string> FormatNames();

// The storage format a scheme gets when nothing names one (checkpoint-format 3.1).
std::string InferFormat(const QuantizationScheme& scheme);

}  // namespace octavo
