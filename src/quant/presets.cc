#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "base/suggest.h"
#include "quant/args.h"

namespace octavo {

namespace {

// What tells the presets' QuantizationArgs apart; everything is symmetric unless it says otherwise.
struct PresetArgs {
  int num_bits = 0;  // 0: not quantized
  QuantizationType type = QuantizationType::kInt;
  Strategy strategy = Strategy::kTensor;
  int64_t group_size = 0;
  Dynamic dynamic = Dynamic::kFalse;
  std::string_view scale_dtype = {};
  std::string_view observer = {};
  bool symmetric = true;
};

struct Preset {
  std::string_view name;
  PresetArgs weights;
  PresetArgs inputs;
};

constexpr QuantizationType kFloat = QuantizationType::kFloat;
constexpr int64_t kBlockSize = 128;

constexpr PresetArgs IntGroup(int bits) {
  return {.num_bits = bits, .strategy = Strategy::kGroup, .group_size = 128};
}
constexpr PresetArgs IntToken(int bits) {
  return {.num_bits = bits, .strategy = Strategy::kToken, .dynamic = Dynamic::kTrue};
}
constexpr PresetArgs MxGroup(int bits, Dynamic dynamic) {
  return {.num_bits = bits,
          .type = kFloat,
          .strategy = Strategy::kGroup,
          .group_size = 32,
          .dynamic = dynamic,
          .scale_dtype = "torch.uint8"};
}
constexpr PresetArgs NvGroup(Dynamic dynamic, std::string_view observer) {
  return {.num_bits = 4,
          .type = kFloat,
          .strategy = Strategy::kTensorGroup,
          .group_size = 16,
          .dynamic = dynamic,
          .scale_dtype = "torch.float8_e4m3fn",
          .observer = observer};
}

constexpr PresetArgs kNone = {};
constexpr PresetArgs kInt4GroupAsymmetric = {
    .num_bits = 4, .strategy = Strategy::kGroup, .group_size = 128, .symmetric = false};
constexpr PresetArgs kInt8Channel = {.num_bits = 8, .strategy = Strategy::kChannel};
constexpr PresetArgs kFp8Tensor = {.num_bits = 8, .type = kFloat};
constexpr PresetArgs kFp8TensorStatic = {
    .num_bits = 8, .type = kFloat, .observer = "static_minmax"};
constexpr PresetArgs kFp8Channel = {.num_bits = 8, .type = kFloat, .strategy = Strategy::kChannel};
constexpr PresetArgs kFp8Block = {.num_bits = 8, .type = kFloat, .strategy = Strategy::kBlock};
constexpr PresetArgs kFp8Token = {
    .num_bits = 8, .type = kFloat, .strategy = Strategy::kToken, .dynamic = Dynamic::kTrue};
constexpr PresetArgs kFp8Group = {.num_bits = 8,
                                  .type = kFloat,
                                  .strategy = Strategy::kGroup,
                                  .group_size = 128,
                                  .dynamic = Dynamic::kTrue};

// clang-format off
constexpr Preset kPresets[] = {
    {"UNQUANTIZED", kNone, kNone},
    {"W8A8", kInt8Channel, IntToken(8)},
    {"INT8", kInt8Channel, IntToken(8)},
    {"W2A16", IntGroup(2), kNone},
    {"W3A16", IntGroup(3), kNone},
    {"W4A16", IntGroup(4), kNone},
    {"W5A16", IntGroup(5), kNone},
    {"W6A16", IntGroup(6), kNone},
    {"W7A16", IntGroup(7), kNone},
    {"W8A16", IntGroup(8), kNone},
    {"W4A16_ASYM", kInt4GroupAsymmetric, kNone},
    {"W2A8", IntGroup(2), IntToken(8)},
    {"W3A8", IntGroup(3), IntToken(8)},
    {"W4A8", IntGroup(4), IntToken(8)},
    {"W5A8", IntGroup(5), IntToken(8)},
    {"W6A8", IntGroup(6), IntToken(8)},
    {"W7A8", IntGroup(7), IntToken(8)},
    {"W2A4", IntGroup(2), IntToken(4)},
    {"W3A4", IntGroup(3), IntToken(4)},
    {"W4A4", IntGroup(4), IntToken(4)},
    {"W4AFP8", IntGroup(4), kFp8Token},
    {"FP8", kFp8Tensor, kFp8TensorStatic},
    {"FP8_DYNAMIC", kFp8Channel, kFp8Token},
    {"FP8_BLOCK", kFp8Block, kFp8Group},
    {"NVFP4A16", NvGroup(Dynamic::kFalse, {}), kNone},
    {"NVFP4", NvGroup(Dynamic::kFalse, {}), NvGroup(Dynamic::kLocal, "static_minmax")},
    {"MXFP4A16", MxGroup(4, Dynamic::kFalse), kNone},
    {"MXFP4", MxGroup(4, Dynamic::kFalse), MxGroup(4, Dynamic::kTrue)},
    {"MXFP8A16", MxGroup(8, Dynamic::kFalse), kNone},
    {"MXFP8", MxGroup(8, Dynamic::kFalse), MxGroup(8, Dynamic::kTrue)},
};
// clang-format on

std::optional<QuantizationArgs> Expand(const PresetArgs& preset) {
  if (preset.num_bits == 0) return std::nullopt;
  QuantizationArgs args;
  args.num_bits = preset.num_bits;
  args.type = preset.type;
  args.symmetric = preset.symmetric;
  args.strategy = preset.strategy;
  if (preset.group_size != 0) args.group_size = preset.group_size;
  if (preset.strategy == Strategy::kBlock) args.block_structure = {kBlockSize, kBlockSize};
  args.dynamic = preset.dynamic;
  if (!preset.scale_dtype.empty()) args.scale_dtype = preset.scale_dtype;
  if (!preset.symmetric) args.zp_dtype = "torch.int8";
  if (!preset.observer.empty()) args.observer = preset.observer;
  return args;
}

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::optional<std::string> PresetNameOf(const QuantizationScheme& scheme) {
  for (const Preset& preset : kPresets) {
    QuantizationScheme known;
    known.weights = Expand(preset.weights);
    known.input_activations = Expand(preset.inputs);
    if (SameQuantization(known, scheme)) return std::string(preset.name);
  }
  return std::nullopt;
}

Result<QuantizationScheme> PresetScheme(std::string_view name, std::vector<std::string> targets) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const Preset& preset : kPresets) {
    if (preset.name != upper) continue;
    QuantizationScheme scheme;
    scheme.targets = std::move(targets);
    scheme.weights = Expand(preset.weights);
    scheme.input_activations = Expand(preset.inputs);
    return scheme;
  }
  const std::vector<std::string> names = PresetNames();
  return NotFound(fmt::format("\"{}\" is no preset scheme{}; known: {}", name,
                              DidYouMean(upper, names), fmt::join(names, ", ")));
}

}  // namespace octavo
