// What a comparison says of each checkpoint by itself: size, scheme, speed, where it comes from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "runtime/load.h"
#include "text/token_id.h"

namespace octavo {

// Tokens per second, with a BF16 cache.
struct Speed {
  int64_t prompt_tokens = 0;
  double prefill = 0;
  double decode = 0;  // of one sequence, behind the prompt
};

// What is written down, so that a report can be traced back.
struct Provenance {
  std::vector<std::pair<std::string, std::string>> hashes;  // weight file, sha256
  std::string recipe;         // recipe.yaml, else quantization_config in JSON; empty: neither
  std::string recipe_source;  // which of the two
};

struct ComparedModel {
  std::string folder;
  std::string label;   // short, and of one model
  std::string scheme;  // "int8 channel, input int8 token dynamic"
  int64_t bytes = 0;   // of all tensors
  double bits_per_weight = 0;
  std::optional<Speed> speed;
  std::optional<Provenance> provenance;
};

// The last parts of the paths where those are distinct, else the paths.
std::vector<std::string> ModelLabels(std::span<const std::string> folders);

ComparedModel DescribeModel(const LoadedModel& loaded, std::string label);

// Of a prompt as long as leaves room for what is decoded, at most all of `tokens`.
Result<Speed> MeasureSpeed(const Model& model, std::span<const TokenId> tokens,
                           const Context& context);

Result<Provenance> FindProvenance(const Checkpoint& checkpoint);

}  // namespace octavo
