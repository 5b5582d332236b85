#include "kernels/matmul_float/matmul_float.h"

#include <fmt/format.h>

#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "bench/onednn_matmul.h"
#include "kernels/matmul_float/kernels.h"

namespace octavo {

namespace {

struct Matmul {
  Tensor x;        // [m, k] f32
  Tensor rival_x;  // the same in the rival's type
  Tensor y;
  std::vector<Tensor> weights;
  std::vector<std::unique_ptr<OnednnMatmul>> rivals;
  Turns weights_turns{0};
  Turns rivals_turns{0};
};

Contenders Prepare(DType dtype, const MatrixShape& shape, int64_t m, const CaseOptions& options) {
  auto matmul = std::make_shared<Matmul>();
  matmul->x = RandomTensor(DType::kF32, {m, shape.k});
  matmul->rival_x = RandomTensor(dtype, {m, shape.k});
  matmul->y = Tensor(DType::kF32, {m, shape.n});
  const Tensor w = RandomTensor(dtype, {shape.n, shape.k});
  const int64_t copies = CopiesFor(m, w.num_bytes(), options.memory);
  float* y = matmul->y.mutable_data<float>().data();
  for (int64_t i = 0; i < copies; ++i) {
    matmul->weights.push_back(w.Clone());
    auto rival =
        OnednnMatmul::Make(w, {}, matmul->rival_x, y, options.isa, options.pool.num_threads());
    if (rival != nullptr) matmul->rivals.push_back(std::move(rival));
  }
  matmul->weights_turns = Turns(matmul->weights.size());
  matmul->rivals_turns = Turns(matmul->rivals.size());
  Contenders contenders;
  contenders.kernel = [matmul, m, shape, y, isa = options.isa, &pool = options.pool] {
    MultiplyFloat(matmul->weights[matmul->weights_turns.Next()], {}, matmul->x.data<float>().data(),
                  shape.k, m, y, shape.n, isa, pool);
  };
  if (!matmul->rivals.empty()) {
    contenders.rival = [matmul] { matmul->rivals[matmul->rivals_turns.Next()]->Run(); };
  }
  return contenders;
}

}  // namespace

// Octavo's products are f32 whatever the weights are, so f32 is their roof; oneDNN's bf16 matmul
// also rounds the activations.
void AddMatmulFloat(const CaseOptions& options, std::vector<KernelCase>* cases) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const MatrixShape& shape : kMatrixShapes) {
      for (const int64_t m : {1, 8, 128, 512}) {
        const int64_t bytes = shape.n * shape.k * DTypeBytes(dtype);
        const double activations =
            4 * static_cast<double>(m) * static_cast<double>(shape.k + shape.n);
        cases->push_back(
            {.kernel = dtype == DType::kBF16 ? "matmul_bf16" : "matmul_f32",
             .shape = fmt::format("{}, n {}, k {}, m {}", shape.name, shape.n, shape.k, m),
             .isa = BestFloatMatmulKernel(dtype, options.isa).isa,
             .arithmetic = RoofKind::kF32,
             .operations = 2 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k),
             .bytes = static_cast<double>(bytes) + activations,
             .footprint = bytes * CopiesFor(m, bytes, options.memory),
             .prepare = [=] { return Prepare(dtype, shape, m, options); }});
      }
    }
  }
}

}  // namespace octavo
