// Kernels that go through rows: what they read and write is what they cost.
#include <fmt/format.h>

#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "kernels/quantize_rows/kernels.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "kernels/rms_norm/kernels.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/kernels.h"
#include "kernels/rope/rope.h"
#include "kernels/silu_mul/kernels.h"
#include "kernels/silu_mul/silu_mul.h"

namespace octavo {

namespace {

constexpr int64_t kHeadDim = 64;

// SmolLM2's widths.
constexpr int64_t kHidden = 576;
constexpr int64_t kIntermediate = 1536;

struct Buffers {
  Tensor x;
  Tensor y;
  Tensor codes;
  Tensor scales;
  Tensor angles;
};

std::shared_ptr<Buffers> MakeBuffers(int64_t m, int64_t inputs, int64_t outputs) {
  return std::make_shared<Buffers>(Buffers{.x = RandomTensor(DType::kF32, {m, inputs}),
                                           .y = Tensor(DType::kF32, {m, outputs}),
                                           .codes = Tensor(DType::kI8, {m, outputs}),
                                           .scales = Tensor(DType::kF32, {m}),
                                           .angles = RandomTensor(DType::kF32, {m, kHeadDim})});
}

struct Row {
  const char* kernel;
  Isa isa;
  int64_t width;
  int64_t bytes_an_element;
};

}  // namespace

void AddRowWise(const CaseOptions& options, std::vector<KernelCase>* cases) {
  const Isa isa = options.isa;
  ThreadPool* pool = &options.pool;
  const auto add = [&](const Row& row, int64_t m, std::function<std::function<void()>()> prepare) {
    const int64_t bytes = m * row.width * row.bytes_an_element;
    cases->push_back({.kernel = row.kernel,
                      .shape = fmt::format("k {}, m {}", row.width, m),
                      .isa = row.isa,
                      .arithmetic = RoofKind::kF32,
                      .operations = 0,
                      .bytes = static_cast<double>(bytes),
                      .footprint = bytes,
                      .prepare = [prepare = std::move(prepare)]() -> Contenders {
                        return {.kernel = prepare(), .rival = {}};
                      }});
  };
  for (const int64_t m : {1, 512}) {
    add({"rms_norm", BestKernel(RmsNormKernels(), isa).isa, kHidden, 8}, m, [=] {
      auto b = MakeBuffers(m, kHidden, kHidden);
      const Tensor& weight = b->y;
      return [=, &weight] {
        RmsNorm(b->x.data<float>().data(), kHidden, m, weight.data<float>().first(kHidden), 1e-5F,
                b->y.mutable_data<float>().data(), kHidden, isa, *pool);
      };
    });
    add({"quantize_rows", BestKernel(QuantizeRowsKernels(), isa).isa, kIntermediate, 5}, m, [=] {
      auto b = MakeBuffers(m, kIntermediate, kIntermediate);
      return [=] {
        QuantizeRowsInt8(b->x.data<float>().data(), kIntermediate, m, kIntermediate,
                         ActivationRule::kEngine, b->codes.mutable_data<int8_t>().data(),
                         b->scales.mutable_data<float>().data(), isa, *pool);
      };
    });
    add({"rope", BestKernel(RopeKernels(), isa).isa, kHidden, 8}, m, [=] {
      auto b = MakeBuffers(m, kHidden, kHidden);
      return [=] {
        const float* angles = b->angles.data<float>().data();
        ApplyRope(b->x.mutable_data<float>().data(), kHidden, m, kHidden / kHeadDim, kHeadDim,
                  kHeadDim, RopePairs::kHalves, angles, angles, isa, *pool);
      };
    });
    add({"silu_mul", BestKernel(SiluMulKernels(), isa).isa, kIntermediate, 12}, m, [=] {
      auto b = MakeBuffers(m, 2 * kIntermediate, kIntermediate);
      return [=] {
        SiluMul(b->x.data<float>().data(), 2 * kIntermediate, m, kIntermediate,
                b->y.mutable_data<float>().data(), kIntermediate, isa, *pool);
      };
    });
  }
}

}  // namespace octavo
