// transform_config (checkpoint-format 7): which matrices a model was multiplied by, where, and what
// that takes while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "io/checkpoint.h"
#include "quant/pattern.h"
#include "quant/row_transform.h"
#include "quant/strict_object.h"
#include "tensor/tensor.h"

namespace octavo {

enum class TransformType : uint8_t { kHadamard, kRandomHadamard, kRandomMatrix };

// InvalidArgument or Unsupported names the key and what is known.
Result<TransformType> ParseTransformType(const StrictObject& object, std::string_view key,
                                         std::string_view fallback = "");

// The first two are folded into weights; the others are applied while the model runs.
enum class TransformLocation : uint8_t {
  kWeightInput,
  kWeightOutput,
  kInput,
  kOutput,
  kQuery,
  kKey
};

// One use of a group of transform_config.
struct TransformUse {
  std::string group;  // "R4"
  TransformType type = TransformType::kHadamard;
  TransformLocation location = TransformLocation::kInput;
  bool inverse = false;
  std::optional<int64_t> block = {};  // head_dim; none: as large as what is transformed
  std::vector<ModulePattern> targets = {};
  std::vector<ModulePattern> ignore = {};
  bool randomize = false;                   // a permutation of its own for each weight
  std::string precision = "torch.float32";  // of stored matrices

  bool is_online() const {
    return location != TransformLocation::kWeightInput &&
           location != TransformLocation::kWeightOutput;
  }
  // "R4 at input".
  std::string Name() const;
  Result<bool> Matches(const ModuleName& module) const;
  // The tensor of the matrix, where it is stored with this module.
  std::string TensorName(std::string_view module) const;
};

// All uses, in the order of the file. InvalidArgument or Unsupported names the key path: an unknown
// type, location or key, a size that is not positive.
Result<std::vector<TransformUse>> ParseTransforms(const Value& transform_config,
                                                  std::string_view where);

// Those at run time. Unsupported for what cannot be done then: random permutations, the inverse of
// a random matrix.
Result<std::vector<TransformUse>> ParseOnlineTransforms(const Value& transform_config,
                                                        std::string_view where);

// What ParseTransforms reads, every key written; uses of one group stand together.
Value ToValue(const std::vector<TransformUse>& uses);

// Makes transforms, each once, from the matrices that a checkpoint stores or, where it stores none,
// from the size.
class TransformMaker {
 public:
  // `checkpoint` outlives the object.
  TransformMaker(const Checkpoint& checkpoint, const std::vector<TransformUse>& transforms);

  // That of a use at `module` on rows of `width` (a head's for queries and keys). A matrix is
  // stored once a size within a group, under the first module that uses it. Errors name the tensor:
  // a size that does not divide the width, a matrix that is missing and cannot be made, or is not
  // one of its type.
  Result<std::shared_ptr<const RowTransform>> Make(const TransformUse& use, std::string_view module,
                                                   int64_t width);

  // Names of the tensors that hold matrices, read or not.
  std::vector<std::string> TensorNames() const;

 private:
  struct Stored {
    std::string name;
    std::string group;
    TransformLocation location;
    TensorView view;
  };

  Result<const Stored*> FindStored(const TransformUse& use, std::string_view module,
                                   int64_t n) const;
  Result<std::shared_ptr<const RowTransform>> FromStored(const TransformUse& use,
                                                         const Stored& stored, int64_t n) const;

  std::vector<Stored> stored_;
  // Tensor name (empty: none), size, inverse.
  std::map<std::tuple<std::string, int64_t, bool>, std::shared_ptr<const RowTransform>> made_;
};

}  // namespace octavo
