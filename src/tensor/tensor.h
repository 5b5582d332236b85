// Tensors: a dtype, a shape and row-major bytes, borrowed (TensorView) or owned (Tensor).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace octavo {

// Where the bytes live. One value now; kernels are looked up by it, so that a second one adds
// files, not edits.
enum class Device : uint8_t { kCpu };

// The DType of a C++ element type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kI8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};
// uint16_t stands for the bits of a BF16 or F16.
template <typename T>
constexpr bool kHoldsBits = std::is_same_v<T, uint16_t>;

// Borrowed, read-only, contiguous row-major elements. The bytes may be unaligned (they may lie in a
// mapped file): data<T>() checks alignment, bytes() does not care.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* bytes = nullptr;
  Device device = Device::kCpu;

  int64_t elements() const { return Elements(shape); }
  int64_t num_bytes() const { return elements() * DTypeBytes(dtype); }

  // The elements as T; aborts when T is not the dtype's or the bytes are not aligned for it.
  template <typename T>
  std::span<const T> data() const {
    CheckType<T>();
    return {reinterpret_cast<const T*>(bytes), static_cast<size_t>(elements())};
  }

 private:
  template <typename T>
  void CheckType() const {
    if constexpr (kHoldsBits<T>) {
      OCTAVO_CHECK(dtype == DType::kBF16 || dtype == DType::kF16) << DTypeName(dtype);
    } else {
      OCTAVO_CHECK(dtype == DTypeOf<T>::value) << DTypeName(dtype);
    }
    OCTAVO_CHECK(reinterpret_cast<uintptr_t>(bytes) % alignof(T) == 0);
  }
};

// Owned bytes, 64-byte aligned. Moves, never copies by accident (Clone copies).
class Tensor {
 public:
  Tensor() = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;
  // Uninitialised elements. The shape must be checked (CheckedElements) where it comes from a file.
  Tensor(DType dtype, Shape shape);
  static Tensor Zeros(DType dtype, Shape shape);
  // Uninitialised, in large pages: for weights, which are read from end to end for every token.
  static Tensor InLargePages(DType dtype, Shape shape);
  static Tensor CopyOf(const TensorView& view);
  Tensor Clone() const { return CopyOf(view()); }

  DType dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  int64_t dim(size_t i) const { return view_.shape.at(i); }
  int64_t elements() const { return view_.elements(); }
  int64_t num_bytes() const { return view_.num_bytes(); }
  bool empty() const { return bytes_ == nullptr; }

  const TensorView& view() const { return view_; }
  operator TensorView() const { return view_; }  // NOLINT: implicit on purpose
  std::byte* bytes() { return bytes_.get(); }

  template <typename T>
  std::span<const T> data() const {
    return view_.data<T>();
  }
  template <typename T>
  std::span<T> mutable_data() {
    std::span<const T> elements = view_.data<T>();
    return {const_cast<T*>(elements.data()), elements.size()};
  }

 private:
  Tensor(DType dtype, Shape shape, std::shared_ptr<std::byte> (*allocate)(size_t size));

  std::shared_ptr<std::byte> bytes_;  // never shared: it also knows how its memory goes back
  TensorView view_;
};

}  // namespace octavo
