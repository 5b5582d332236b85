#include "tensor/shape.h"

namespace octavo {

namespace {

constexpr int64_t kMaxElements = INT64_MAX / 8;  // of the widest dtype

}  // namespace

Result<int64_t> CheckedElements(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0) return CorruptFile("shape " + ShapeString(shape) + " has a negative size");
    if (__builtin_mul_overflow(elements, size, &elements) || elements > kMaxElements) {
      return CorruptFile("shape " + ShapeString(shape) +
                         " has more elements than an int64 can count the bytes of");
    }
  }
  return elements;
}

int64_t Elements(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  return elements;
}

std::string ShapeString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace octavo
