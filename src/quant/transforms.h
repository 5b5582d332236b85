// Transforms that a checkpoint asks for while the model runs (transform_config; checkpoint-format
// 7): which, where, and with which matrices.
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
#include "tensor/tensor.h"

namespace octavo {

enum class TransformType : uint8_t { kHadamard, kRandomHadamard, kRandomMatrix };

// Those at run time; what is folded into the weights (weight_input, weight_output) needs nothing.
enum class TransformLocation : uint8_t { kInput, kOutput, kQuery, kKey };

// One use of a group of transform_config.
struct OnlineTransform {
  std::string group;  // "R4"
  TransformType type;
  TransformLocation location;
  bool inverse = false;
  std::optional<int64_t> block;  // head_dim; none: as large as what is transformed
  std::vector<ModulePattern> targets;
  std::vector<ModulePattern> ignore;

  // "R4 at input".
  std::string Name() const;
  Result<bool> Matches(const ModuleName& module) const;
};

// The uses at run time, in the order of the file. InvalidArgument or Unsupported names the key
// path: an unknown type, location or key, a size that is not positive, random permutations.
Result<std::vector<OnlineTransform>> ParseOnlineTransforms(const Value& transform_config,
                                                           std::string_view where);

// Makes transforms, each once, from the matrices that a checkpoint stores or, where it stores none,
// from the size.
class TransformMaker {
 public:
  // `checkpoint` outlives the object.
  TransformMaker(const Checkpoint& checkpoint, const std::vector<OnlineTransform>& transforms);

  // That of a use at `module` on rows of `width` (a head's for queries and keys). A matrix is
  // stored once a size within a group, under the first module that uses it. Errors name the tensor:
  // a size that does not divide the width, a matrix that is missing and cannot be made, or is not
  // one of its type.
  Result<std::shared_ptr<const RowTransform>> Make(const OnlineTransform& use,
                                                   std::string_view module, int64_t width);

  // Names of the tensors that hold matrices, read or not.
  std::vector<std::string> TensorNames() const;

 private:
  struct Stored {
    std::string name;
    std::string group;
    TransformLocation location;
    TensorView view;
  };

  Result<const Stored*> FindStored(const OnlineTransform& use, std::string_view module,
                                   int64_t n) const;
  Result<std::shared_ptr<const RowTransform>> FromStored(const OnlineTransform& use,
                                                         const Stored& stored, int64_t n) const;

  std::vector<Stored> stored_;
  // Tensor name (empty: none), size, inverse.
  std::map<std::tuple<std::string, int64_t, bool>, std::shared_ptr<const RowTransform>> made_;
};

}  // namespace octavo
