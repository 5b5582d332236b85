#include "kernels/gram/gram.h"

#include <fmt/format.h>

#include "bench/families/inputs.h"
#include "bench/kernel_case.h"

namespace octavo {

namespace {

struct Gram {
  Tensor x;  // [m, k]
  Tensor h;  // [k, k]
};

}  // namespace

void AddGramCases(const CaseOptions& options, std::vector<KernelCase>* cases) {
  constexpr int64_t kRows = 2048;
  for (const int64_t k : {576, 1536, 4096}) {
    cases->push_back({.kernel = "gram",
                      .shape = fmt::format("k {}, m {}", k, kRows),
                      .isa = options.isa,
                      .arithmetic = RoofKind::kF32,
                      // The upper triangle.
                      .operations = static_cast<double>(kRows) * static_cast<double>(k * (k + 1)),
                      .bytes = static_cast<double>(4 * kRows * k + 4 * k * k),
                      .footprint = 4 * kRows * k + 4 * k * k,
                      .prepare = [k, options]() -> Contenders {
                        auto gram = std::make_shared<Gram>(RandomTensor(DType::kF32, {kRows, k}),
                                                           Tensor::Zeros(DType::kF32, {k, k}));
                        return {.kernel =
                                    [gram, k, isa = options.isa, &pool = options.pool] {
                                      AddGram(gram->x.data<float>().data(), k, kRows, k, 1.0F,
                                              gram->h.mutable_data<float>(), isa, pool);
                                    },
                                .rival = {}};
                      }});
  }
}

}  // namespace octavo
