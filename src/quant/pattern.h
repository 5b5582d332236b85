// ModulePattern: one target or ignore entry, compiled once and matched against many modules
// (checkpoint-format 5.1).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/shape.h"

namespace octavo {

// A module that may be quantized.
struct ModuleName {
  std::string_view name;        // "model.layers.0.mlp.down_proj"
  std::string_view class_name;  // "Linear", "Embedding", "LlamaAttention"
};

// How a pattern matched, best first.
enum class MatchKind { kName, kRegex, kClass, kNone };

// "re:" and a regular expression that must match from the start of the name (the end is free), or
// an exact name, or a class. "LinearBase" counts as "Linear", "Module" as every class.
class ModulePattern {
 public:
  // InvalidArgument names a regular expression that does not compile, and where.
  static Result<ModulePattern> Make(std::string_view text);
  ModulePattern(ModulePattern&&) noexcept;
  ModulePattern& operator=(ModulePattern&&) noexcept;
  ~ModulePattern();

  const std::string& text() const { return text_; }

  // InvalidArgument when a regular expression exceeds its limits of steps or memory.
  Result<MatchKind> Match(const ModuleName& module) const;

 private:
  struct Regex;
  ModulePattern();

  std::string text_;
  std::unique_ptr<Regex> regex_;  // null unless "re:"
};

// Whether engines would take a tensor for the weight of a linear layer: every matrix "<m>.weight"
// that is no embedding and no norm (checkpoint-format 5.1). One that is not quantized must be in
// `ignore`.
bool LooksLikeLinear(std::string_view tensor_name, const Shape& shape);

}  // namespace octavo
