#include "kernels/matmul_int8/matmul_int8.h"

#include <fmt/format.h>

#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "bench/onednn_matmul.h"
#include "kernels/matmul_int8/kernels.h"

namespace octavo {

namespace {

// All that a case's calls use; it lives as long as the case's functions.
struct Matmul {
  Tensor codes;       // [m, k]
  Tensor row_scales;  // [m]
  Tensor weight_scales;
  Tensor y;
  std::vector<Int8Weights> weights;
  std::vector<std::unique_ptr<OnednnMatmul>> rivals;
  Turns weights_turns{0};
  Turns rivals_turns{0};
};

Contenders Prepare(const MatrixShape& shape, int64_t m, const CaseOptions& options) {
  auto matmul = std::make_shared<Matmul>();
  matmul->codes = RandomTensor(DType::kI8, {m, shape.k});
  matmul->row_scales = RandomTensor(DType::kF32, {m});
  matmul->weight_scales = RandomTensor(DType::kF32, {shape.n});
  matmul->y = Tensor(DType::kF32, {m, shape.n});
  const Tensor w = RandomTensor(DType::kI8, {shape.n, shape.k});
  const int64_t copies = CopiesFor(m, w.num_bytes(), options.memory);
  float* y = matmul->y.mutable_data<float>().data();
  for (int64_t i = 0; i < copies; ++i) {
    const TensorView part = w.view();
    matmul->weights.push_back(Int8Weights::Pack({&part, 1}, options.isa, options.pool));
    auto rival = OnednnMatmul::Make(w, matmul->weight_scales.data<float>(), matmul->codes, y,
                                    options.isa, options.pool.num_threads());
    if (rival != nullptr) matmul->rivals.push_back(std::move(rival));
  }
  matmul->weights_turns = Turns(matmul->weights.size());
  matmul->rivals_turns = Turns(matmul->rivals.size());
  Contenders contenders;
  contenders.kernel = [matmul, m, n = shape.n, y, &pool = options.pool] {
    const Int8Rows rows{.codes = matmul->codes.data<int8_t>().data(),
                        .scales = matmul->row_scales.data<float>().data(),
                        .m = m};
    MultiplyInt8(matmul->weights[matmul->weights_turns.Next()], rows,
                 matmul->weight_scales.data<float>(), {}, y, n, pool);
  };
  if (!matmul->rivals.empty()) {
    contenders.rival = [matmul] { matmul->rivals[matmul->rivals_turns.Next()]->Run(); };
  }
  return contenders;
}

}  // namespace

void AddMatmulInt8(const CaseOptions& options, std::vector<KernelCase>* cases) {
  for (const MatrixShape& shape : kMatrixShapes) {
    for (const int64_t m : {1, 4, 8, 32, 128, 512}) {
      const int64_t bytes = shape.n * shape.k;
      const double activations =
          static_cast<double>(m) * static_cast<double>(shape.k + 4 * shape.n);
      cases->push_back(
          {.kernel = "matmul_int8",
           .shape = fmt::format("{}, n {}, k {}, m {}", shape.name, shape.n, shape.k, m),
           .isa = BestKernel(Int8MatmulKernels(), options.isa).isa,
           .arithmetic = RoofKind::kInt8,
           .operations = 2 * static_cast<double>(m) * static_cast<double>(bytes),
           .bytes = static_cast<double>(bytes) + activations,
           .footprint = bytes * CopiesFor(m, bytes, options.memory),
           .prepare = [=] { return Prepare(shape, m, options); }});
    }
  }
}

}  // namespace octavo
