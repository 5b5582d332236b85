// The seam to oneDNN: its sgemm, on the calling thread only.
#include <dnnl.h>

#include <mutex>

#include "kernels/matmul_float/matmul_float.h"
#include "kernels/matmul_float/panels.h"

// libgomp's, declared here because our code is not compiled with OpenMP.
extern "C" void omp_set_num_threads(int);

namespace octavo {

namespace {

dnnl_cpu_isa_t DnnlIsa(Isa isa) {
  switch (isa) {
    case Isa::kRef:
      return dnnl_cpu_isa_sse41;
    case Isa::kAvx2:
      return dnnl_cpu_isa_avx2;
    case Isa::kAvx512:
      return dnnl_cpu_isa_avx512_core;
    case Isa::kAvx512Vnni:
      break;
  }
  return dnnl_cpu_isa_all;
}

// oneDNN takes a cap once a process, before its first use, so the first caller's holds; a program
// has one (SelectIsa), only tests call with several.
void CapDnnl(Isa isa) {
  static std::once_flag once;
  std::call_once(once, [isa] {
    if (isa < DetectIsa()) dnnl_set_max_cpu_isa(DnnlIsa(isa));
  });
}

// oneDNN would start a team of its own in each of our threads.
void KeepToThisThread() {
  thread_local const bool done = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

void SgemmTile(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
               const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
               int64_t ldc, Isa isa) {
  if (m == 0 || n == 0) return;
  // A right-hand matrix that lies as a panel already needs no packing.
  const PanelKernel* panels = FindPanelKernel(DType::kF32, isa);
  if (panels != nullptr && !transpose_b && n <= kPanelColumns && ldb == kPanelColumns &&
      beta == 1.0F) {
    return panels->multiply(
        {.data = a, .row_stride = transpose_a ? 1 : lda, .step_stride = transpose_a ? lda : 1}, m,
        b, k, {.c = c, .ldc = ldc, .columns = n, .add = true, .scale = alpha});
  }
  CapDnnl(isa);
  KeepToThisThread();
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  OCTAVO_CHECK(status == dnnl_success)
      << "dnnl_sgemm " << m << " x " << n << " x " << k << ": " << static_cast<int>(status);
}

}  // namespace octavo
