#include "kernels/matmul_int4/matmul_int4.h"

#include <fmt/format.h>

#include <cstring>

#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "kernels/matmul_int4/kernels.h"
#include "kernels/matmul_int8/matmul_int8.h"

namespace octavo {

namespace {

struct Form {
  const char* name;
  int64_t group;  // 0: k
  bool zero_points;
};

constexpr Form kForms[] = {
    {"channel", 0, false}, {"g128", 128, false}, {"g64", 64, false}, {"g32 asym", 32, true}};

constexpr MatrixShape kShapes[] = {kMatrixShapes[2], kMatrixShapes[4], kMatrixShapes[5]};

// All that a case's calls use; it lives as long as the case's functions.
struct Matmul {
  Tensor codes;       // [m, k]
  Tensor row_scales;  // [m]
  Tensor y;
  std::vector<Int4Weights> weights;
  Turns turns{0};
  Tensor int8_scales;  // [n]
  std::vector<Int8Weights> int8_weights;
  Turns int8_turns{0};
};

int64_t GroupOf(const Form& form, const MatrixShape& shape) {
  return form.group == 0 ? shape.k : form.group;
}

// So many copies of one matrix.
std::vector<Int4Weights> MakeWeights(const Form& form, const MatrixShape& shape, int64_t copies,
                                     const CaseOptions& options) {
  const int64_t group = GroupOf(form, shape);
  const int64_t units = shape.k / group;
  const Tensor codes = RandomTensor(DType::kI8, {shape.n, shape.k / 2});
  const Tensor scales = RandomTensor(DType::kF32, {shape.n, units});
  Tensor zero_points(DType::kI8, {shape.n, units});
  std::memset(zero_points.bytes(), 1, static_cast<size_t>(zero_points.num_bytes()));
  const CodedMatrix matrix{
      .format = CodeFormat::kNibble,
      .n = shape.n,
      .k = shape.k,
      .codes = reinterpret_cast<const uint8_t*>(codes.view().bytes),
      .row_bytes = shape.k / 2,
      .scales = scales.view().bytes,
      .scale_columns = units,
      .unit_columns = group,
      .zero_points = form.zero_points ? zero_points.data<int8_t>().data() : nullptr};
  std::vector<Int4Weights> weights;
  for (int64_t i = 0; i < copies; ++i)
    weights.push_back(Int4Weights::Pack({&matrix, 1}, 0, options.isa, options.pool));
  return weights;
}

// Beside the same matmul with weights of 8 bits, a scale for each channel.
Contenders Prepare(const Form& form, const MatrixShape& shape, int64_t m,
                   const CaseOptions& options) {
  auto matmul = std::make_shared<Matmul>();
  matmul->codes = RandomTensor(DType::kI8, {m, shape.k});
  matmul->row_scales = RandomTensor(DType::kF32, {m});
  matmul->y = Tensor(DType::kF32, {m, shape.n});
  const Tensor w = RandomTensor(DType::kI8, {shape.n, shape.k});
  const TensorView part = w;
  matmul->int8_scales = RandomTensor(DType::kF32, {shape.n});
  const int64_t int8_copies = CopiesFor(m, shape.n * shape.k, options.memory);
  for (int64_t i = 0; i < int8_copies; ++i)
    matmul->int8_weights.push_back(Int8Weights::Pack({&part, 1}, options.isa, options.pool));
  matmul->int8_turns = Turns(matmul->int8_weights.size());
  matmul->weights =
      MakeWeights(form, shape, CopiesFor(m, shape.n * shape.k / 2, options.memory), options);
  matmul->turns = Turns(matmul->weights.size());
  Contenders contenders;
  contenders.kernel = [matmul, m, n = shape.n, &pool = options.pool] {
    MultiplyInt4(matmul->weights[matmul->turns.Next()],
                 {.codes = matmul->codes.data<int8_t>().data(),
                  .scales = matmul->row_scales.data<float>().data(),
                  .m = m},
                 {}, matmul->y.mutable_data<float>().data(), n, pool);
  };
  contenders.rival = [matmul, m, n = shape.n, &pool = options.pool] {
    MultiplyInt8(matmul->int8_weights[matmul->int8_turns.Next()],
                 {.codes = matmul->codes.data<int8_t>().data(),
                  .scales = matmul->row_scales.data<float>().data(),
                  .m = m},
                 matmul->int8_scales.data<float>(), {}, matmul->y.mutable_data<float>().data(), n,
                 pool);
  };
  return contenders;
}

}  // namespace

void AddMatmulInt4(const CaseOptions& options, std::vector<KernelCase>* cases) {
  for (const Form& form : kForms) {
    for (const MatrixShape& shape : kShapes) {
      for (const int64_t m : {1, 4, 32, 128, 512}) {
        const int64_t bytes = shape.n * (shape.k / 2 + 4 * shape.k / GroupOf(form, shape));
        const double activations =
            static_cast<double>(m) * static_cast<double>(shape.k + 4 * shape.n);
        cases->push_back(
            {.kernel = fmt::format("matmul_int4 {}", form.name),
             .shape = fmt::format("{}, n {}, k {}, m {}", shape.name, shape.n, shape.k, m),
             .isa = BestKernel(Int4MatmulKernels(), options.isa).isa,
             .arithmetic = RoofKind::kInt8,
             .operations = 2 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k),
             .bytes = static_cast<double>(bytes) + activations,
             .footprint = bytes * CopiesFor(m, bytes, options.memory),
             .rival = "int8",
             .prepare = [=] { return Prepare(form, shape, m, options); }});
      }
    }
  }
}

}  // namespace octavo
