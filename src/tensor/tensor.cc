#include "tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "tensor/large_pages.h"

namespace octavo {

namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector

std::shared_ptr<std::byte> AllocateAligned(size_t size) {
  // Never zero: data() of nothing is still a pointer.
  const size_t rounded = (size + kAlignment) / kAlignment * kAlignment;
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (bytes == nullptr) throw std::bad_alloc();
  return {bytes, std::free};
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<std::byte> (*allocate)(size_t size)) {
  view_.dtype = dtype;
  view_.shape = std::move(shape);
  bytes_ = allocate(static_cast<size_t>(view_.num_bytes()));
  view_.bytes = bytes_.get();
}

Tensor::Tensor(DType dtype, Shape shape) : Tensor(dtype, std::move(shape), AllocateAligned) {}

Tensor Tensor::InLargePages(DType dtype, Shape shape) {
  return Tensor(dtype, std::move(shape), AllocateInLargePages);
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
