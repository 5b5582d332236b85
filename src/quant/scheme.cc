#include "quant/scheme.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "quant/scale_grid.h"

namespace octavo {

#define OCTAVO_SCHEME(record) extern const Scheme record;
#include "quant/schemes/schemes.inc"
#undef OCTAVO_SCHEME

namespace {

constexpr const Scheme* kSchemes[] = {
#define OCTAVO_SCHEME(record) &record,
#include "quant/schemes/schemes.inc"
#undef OCTAVO_SCHEME
};

std::string DTypeNames(const std::vector<DType>& dtypes) {
  std::vector<std::string_view> names;
  for (DType dtype : dtypes) names.push_back(DTypeName(dtype));
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string ShapeStrings(const std::vector<Shape>& shapes) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes) names.push_back(ShapeString(shape));
  return fmt::format("{}", fmt::join(names, " or "));
}

template <typename T>
bool Contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Status CheckTensor(const LinearLayer& layer, const DeclaredTensor& declared,
                   const TensorView& found) {
  if (Contains(declared.dtypes, found.dtype) && Contains(declared.shapes, found.shape))
    return OkStatus();
  return InvalidArgument(fmt::format("{}.{} is {} {}, expected {} {}", layer.name, declared.suffix,
                                     DTypeName(found.dtype), ShapeString(found.shape),
                                     DTypeNames(declared.dtypes), ShapeStrings(declared.shapes)));
}

}  // namespace

std::span<const Scheme* const> AllSchemes() {
  return kSchemes;
}

Result<QuantizationScheme> ExampleOf(std::string_view example) {
  Result<QuantizationScheme> scheme = Unsupported("");
  if (example.starts_with('{')) {
    OCTAVO_ASSIGN_OR_RETURN(Value group, ParseJson(example, "example"));
    group.Set("targets", Value::Array{Value("Linear")});
    scheme = ParseQuantizationScheme(group, "example");
  } else {
    scheme = PresetScheme(example, {"Linear"});
  }
  if (scheme.ok() && !scheme->format) scheme->format = InferFormat(*scheme);
  return scheme;
}

Result<const Scheme*> SelectScheme(const LinearLayer& layer) {
  const Scheme* nearest = nullptr;
  std::vector<std::string> nearest_differences;
  for (const Scheme* scheme : kSchemes) {
    std::vector<std::string> differences = scheme->differences(layer.quantization);
    if (differences.empty()) {
      // Groups that do not divide the columns fit no tensors.
      if (const auto& weights = layer.quantization.weights) {
        const auto grid = MakeScaleGrid(*weights, layer.n, layer.k);
        if (!grid.ok()) return grid.status().Annotate(layer.name);
      }
      return scheme;
    }
    if (nearest == nullptr || differences.size() < nearest_differences.size()) {
      nearest = scheme;
      nearest_differences = std::move(differences);
    }
  }
  return Unsupported(fmt::format(
      "{}: no scheme computes what is declared ({}); the nearest is {}, from which differs: {}",
      layer.name, SchemeString(layer.quantization), nearest->name,
      fmt::join(nearest_differences, "; ")));
}

Status CheckDeclared(const Scheme& scheme, const LinearLayer& layer, const LayerViews& tensors) {
  const std::vector<DeclaredTensor> declared_tensors = scheme.declare(layer);
  for (const DeclaredTensor& declared : declared_tensors) {
    const auto found = tensors.find(declared.suffix);
    if (found != tensors.end()) {
      OCTAVO_RETURN_IF_ERROR(CheckTensor(layer, declared, found->second));
    } else if (!declared.optional) {
      return NotFound(fmt::format("{}.{} is missing; {} needs it as {} {}", layer.name,
                                  declared.suffix, scheme.name, DTypeNames(declared.dtypes),
                                  ShapeStrings(declared.shapes)));
    }
  }
  for (const auto& [suffix, tensor] : tensors) {
    const bool known =
        std::any_of(declared_tensors.begin(), declared_tensors.end(),
                    [&](const DeclaredTensor& declared) { return declared.suffix == suffix; });
    if (!known) {
      return InvalidArgument(fmt::format(
          "{}.{} ({} {}) is in the checkpoint, but {}, which is declared for this layer, "
          "does not use it",
          layer.name, suffix, DTypeName(tensor.dtype), ShapeString(tensor.shape), scheme.name));
    }
  }
  return OkStatus();
}

}  // namespace octavo
