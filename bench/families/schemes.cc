// Every scheme of the list, in each form it names: a layer as it runs in a model, the quantization
// of its input included. The families of kernels say where the time goes.
#include <fmt/format.h>

#include "base/rng.h"
#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "quant/scheme.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Whose columns groups of 128 divide.
constexpr MatrixShape kShapes[] = {kMatrixShapes[3], kMatrixShapes[4]};

// All that a case's calls use; it lives as long as the case's functions.
struct Layers {
  LinearLayer layer;
  Tensor x;
  Tensor y;
  QuantizedRows rows;
  std::vector<LayerTensors> tensors;
  std::vector<std::unique_ptr<PreparedLinear>> prepared;
  Turns turns{0};
};

LinearLayer LayerOf(std::string_view example, const MatrixShape& shape) {
  return {.name = "layer", .n = shape.n, .k = shape.k, .quantization = ExampleOf(example).value()};
}

ScaleAndZeroPoint OneScale() {
  ScaleAndZeroPoint scales{Tensor(DType::kF32, {1}), Tensor(DType::kI8, {1}), Tensor()};
  scales.scale.mutable_data<float>()[0] = 1.0F / 64;
  scales.zero_point.mutable_data<int8_t>()[0] = 0;
  return scales;
}

// Random weights, stored as the scheme stores them.
LayerTensors Store(const Scheme& scheme, const LinearLayer& layer) {
  LayerTensors tensors;
  if (scheme.pack == nullptr) {
    tensors["weight"] = RandomTensor(layer.model_dtype, {layer.n, layer.k});
    return tensors;
  }
  const Tensor w = RandomTensor(DType::kF32, {layer.n, layer.k});
  tensors = scheme
                .pack(layer, QuantizeToNearest(*layer.quantization.weights, w.data<float>(),
                                               layer.n, layer.k, layer.model_dtype)
                                 .value())
                .value();
  if (scheme.pack_input != nullptr) tensors.merge(scheme.pack_input(layer, OneScale()).value());
  if (scheme.pack_output != nullptr) tensors.merge(scheme.pack_output(layer, OneScale()).value());
  return tensors;
}

// What is on disk for a layer.
int64_t StoredBytes(const Scheme& scheme, const LinearLayer& layer) {
  int64_t bytes = 0;
  for (const DeclaredTensor& tensor : scheme.declare(layer)) {
    if (tensor.optional || tensor.shapes.empty()) continue;  // where any shape is right it is small
    bytes += Elements(tensor.shapes[0]) * DTypeBytes(tensor.dtypes[0]);
  }
  return bytes;
}

Contenders Prepare(const Scheme& scheme, const LinearLayer& layer, int64_t m, int64_t copies,
                   const CaseOptions& options) {
  auto layers = std::make_shared<Layers>();
  layers->layer = layer;
  layers->x = RandomTensor(DType::kF32, {m, layer.k});
  layers->y = Tensor(DType::kF32, {m, layer.n});
  const LayerTensors stored = Store(scheme, layer);
  const Context context{.pool = options.pool, .isa = options.isa};
  for (int64_t i = 0; i < copies; ++i) {
    LayerTensors& own = layers->tensors.emplace_back();
    LayerViews views;
    for (const auto& [suffix, tensor] : stored) {
      own[suffix] = tensor.Clone();
      views[suffix] = own[suffix].view();
    }
    layers->prepared.push_back(
        scheme.prepare({&layers->layer, 1}, {&views, 1}, {}, context).value());
    if (!layers->prepared.back()->reads_file()) own.clear();
  }
  layers->turns = Turns(layers->prepared.size());
  Contenders contenders;
  contenders.kernel = [layers, m, options] {
    const Context at{.pool = options.pool, .isa = options.isa};
    const PreparedLinear& linear = *layers->prepared[layers->turns.Next()];
    const int64_t k = layers->layer.k;
    linear.QuantizeRows({layers->x.data<float>().data(), m, k, k}, &layers->rows, at);
    linear.Multiply(layers->rows, layers->y.mutable_data<float>().data(), layers->layer.n, at);
  };
  return contenders;
}

RoofKind RoofOf(const QuantizationScheme& declared) {
  const bool is_integer =
      declared.input_activations && declared.input_activations->type == QuantizationType::kInt;
  return is_integer ? RoofKind::kInt8 : RoofKind::kF32;
}

// Config groups without quotation marks and spaces: names are read in a table.
std::string ShortName(const Scheme& scheme, std::string_view example) {
  std::string name(example);
  std::erase_if(name, [](char c) { return c == '"' || c == ' '; });
  return fmt::format("{}: {}", scheme.name, name);
}

}  // namespace

void AddSchemes(const CaseOptions& options, std::vector<KernelCase>* cases) {
  for (const Scheme* scheme : AllSchemes()) {
    for (const std::string_view example : scheme->examples) {
      for (const MatrixShape& shape : kShapes) {
        const LinearLayer layer = LayerOf(example, shape);
        const int64_t bytes = StoredBytes(*scheme, layer);
        for (const int64_t m : {1, 4, 512}) {
          const double activations =
              4 * static_cast<double>(m) * static_cast<double>(shape.k + shape.n);
          const int64_t copies = CopiesFor(m, bytes, options.memory);
          cases->push_back(
              {.kernel = ShortName(*scheme, example),
               .shape = fmt::format("{}, n {}, k {}, m {}", shape.name, shape.n, shape.k, m),
               .isa = options.isa,
               .arithmetic = RoofOf(layer.quantization),
               .operations = 2 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k),
               .bytes = static_cast<double>(bytes) + activations,
               .footprint = bytes * copies,
               .prepare = [=] { return Prepare(*scheme, layer, m, copies, options); }});
        }
      }
    }
  }
}

}  // namespace octavo
