#include "tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace octavo {

namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector

}  // namespace

void Tensor::AlignedDelete::operator()(std::byte* bytes) const {
  std::free(bytes);
}

Tensor::Tensor(DType dtype, Shape shape) {
  view_.dtype = dtype;
  view_.shape = std::move(shape);
  const auto size = static_cast<size_t>(view_.num_bytes());
  const size_t rounded = (size + kAlignment) / kAlignment *
                         kAlignment;  // never zero: data() of nothing is still a pointer
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (bytes == nullptr) throw std::bad_alloc();
  bytes_.reset(bytes);
  view_.bytes = bytes;
}

Tensor Tensor::Zeros(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  std::memset(tensor.bytes(), 0, static_cast<size_t>(tensor.num_bytes()));
  return tensor;
}

Tensor Tensor::CopyOf(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  if (view.num_bytes() > 0)
    std::memcpy(tensor.bytes(), view.bytes, static_cast<size_t>(view.num_bytes()));
  return tensor;
}

}  // namespace octavo
