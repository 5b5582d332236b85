#include "bench/onednn_matmul.h"

#include <dnnl.hpp>
#include <vector>

#include "base/check.h"
#include "kernels/matmul_float/matmul_float.h"

// libgomp's, declared here because our code is not compiled with OpenMP.
extern "C" void omp_set_num_threads(int);

namespace octavo {

namespace {

using dnnl::memory;

memory::data_type DataType(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return memory::data_type::s8;
    case DType::kBF16:
      return memory::data_type::bf16;
    case DType::kF32:
      return memory::data_type::f32;
    default:
      OCTAVO_CHECK(false) << DTypeName(dtype);
      return memory::data_type::undef;
  }
}

// oneDNN is capped with its first use, by the kernel that needs it.
void CapOnednn(Isa isa) {
  const float one = 1;
  float y = 0;
  SgemmTile(false, false, 1, 1, 1, 1, &one, 1, &one, 1, 0, &y, 1, isa);
}

void* MutableBytes(const TensorView& view) {
  return const_cast<std::byte*>(view.bytes);  // oneDNN's memory knows no const
}

}  // namespace

struct OnednnMatmul::Primitive {
  int threads;
  dnnl::engine engine;
  dnnl::stream stream;
  Tensor packed;  // w as oneDNN wants it, in large pages as ours is
  memory x;
  memory w;
  memory y;
  dnnl::matmul matmul;
};

OnednnMatmul::OnednnMatmul(std::unique_ptr<Primitive> primitive)
    : primitive_(std::move(primitive)) {}

OnednnMatmul::~OnednnMatmul() = default;

std::unique_ptr<OnednnMatmul> OnednnMatmul::Make(const TensorView& w, std::span<const float> scales,
                                                 const TensorView& x, float* y, Isa isa,
                                                 int threads) {
  CapOnednn(isa);
  const int64_t n = w.shape.at(0);
  const int64_t k = w.shape.at(1);
  const int64_t m = x.shape.at(0);
  const memory::data_type type = DataType(w.dtype);
  // oneDNN throws; what it cannot do on this processor is no error here.
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    dnnl::primitive_attr attributes;
    constexpr int kPerColumn = 1 << 1;
    if (!scales.empty()) attributes.set_output_scales(kPerColumn, {scales.begin(), scales.end()});
    const memory::desc x_desc({m, k}, type, memory::format_tag::ab);
    const memory::desc w_desc({k, n}, type, memory::format_tag::any);
    const memory::desc y_desc({m, n}, memory::data_type::f32, memory::format_tag::ab);
    omp_set_num_threads(threads);
    const dnnl::matmul::primitive_desc desc({x_desc, w_desc, y_desc}, attributes, engine);
    memory stored({{k, n}, type, memory::format_tag::ba}, engine, MutableBytes(w));
    Tensor bytes =
        Tensor::InLargePages(DType::kU8, {static_cast<int64_t>(desc.weights_desc().get_size())});
    memory packed(desc.weights_desc(), engine, bytes.bytes());
    dnnl::reorder(stored, packed).execute(stream, stored, packed);
    stream.wait();
    omp_set_num_threads(1);
    return std::unique_ptr<OnednnMatmul>(new OnednnMatmul(std::make_unique<Primitive>(Primitive{
        threads, engine, stream, std::move(bytes), memory(x_desc, engine, MutableBytes(x)), packed,
        memory(y_desc, engine, y), dnnl::matmul(desc)})));
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

void OnednnMatmul::Run() {
  // The kernels of Octavo keep oneDNN to one thread each.
  omp_set_num_threads(primitive_->threads);
  primitive_->matmul.execute(primitive_->stream, {{DNNL_ARG_SRC, primitive_->x},
                                                  {DNNL_ARG_WEIGHTS, primitive_->w},
                                                  {DNNL_ARG_DST, primitive_->y}});
  primitive_->stream.wait();
  omp_set_num_threads(1);
}

}  // namespace octavo
