// What the modifiers that rotate a model are told: which rotations, by which matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "compress/modifier.h"
#include "quant/strict_object.h"
#include "quant/transforms.h"

namespace octavo {

// What differs from class to class.
struct TransformDefaults {
  std::vector<std::string> known_rotations;  // in the order in which they are applied
  std::vector<std::string> rotations;
  std::string_view transform_type;
};

struct TransformSettings {
  std::vector<std::string> rotations;  // of those that are known, in their order
  TransformType type = TransformType::kHadamard;
  std::string type_name;
  std::optional<int64_t> block;  // transform_block_size
  std::string precision;         // "torch.float64"
  uint64_t seed = 0;
  Value transform_config;  // in place of what the rotations say; null: none given

  bool Has(std::string_view rotation) const;
  // A use of a rotation; what the settings say is filled in.
  Result<TransformUse> Use(std::string_view group, TransformLocation location, bool inverse,
                           const std::vector<std::string>& targets,
                           const std::vector<std::string>& ignore) const;
  // As the library saves them; what is the default of a setting of ours is left out.
  Value Saved() const;
};

// The keys of both classes, to which each adds its own.
std::vector<std::string> TransformKeys();

// Unsupported for learnable and randomize; transform_config is checked too.
Result<TransformSettings> ParseTransformSettings(const StrictObject& object,
                                                 const TransformDefaults& defaults, Logger& log);

}  // namespace octavo
