#include "tensor/convert.h"

#include <cstring>
#include <string>

namespace octavo {

namespace {

template <typename T, typename Convert>
void ConvertAll(const std::byte* bytes, std::span<float> out, const Convert& convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, bytes + i * sizeof(T), sizeof(T));
    out[i] = convert(element);
  }
}

}  // namespace

float FloatFromF16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00U)
    return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13);
  // Below 2^-14 the value is magnitude * 2^-24; above, exponents move from bias 15 to 127.
  if (magnitude < 0x400U) {
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
}

uint16_t F16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x47800000U) return static_cast<uint16_t>(sign | 0x7C00U);  // 65536 and more
  if (magnitude < 0x38800000U) {
    // Below 2^-14: adding 0.5 makes the float adder round to multiples of 2^-24, ties to even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000U));
  }
  const uint32_t rounded = magnitude - (112U << 23) + 0xFFFU + (magnitude >> 13 & 1U);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

Status ToFloat(const TensorView& view, std::span<float> out) {
  OCTAVO_CHECK(static_cast<int64_t>(out.size()) == view.elements());
  switch (view.dtype) {
    case DType::kF64:
      ConvertAll<double>(view.bytes, out, [](double x) { return static_cast<float>(x); });
      return OkStatus();
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), view.bytes, out.size_bytes());
      return OkStatus();
    case DType::kBF16:
      ConvertAll<uint16_t>(view.bytes, out, FloatFromBf16);
      return OkStatus();
    case DType::kF16:
      ConvertAll<uint16_t>(view.bytes, out, FloatFromF16);
      return OkStatus();
    default:
      return Unsupported("a " + std::string(DTypeName(view.dtype)) +
                         " tensor is not read as float32");
  }
}

Result<Tensor> ToFloatTensor(const TensorView& view) {
  Tensor tensor(DType::kF32, view.shape);
  OCTAVO_RETURN_IF_ERROR(ToFloat(view, tensor.mutable_data<float>()));
  return tensor;
}

Result<Tensor> FromFloat(std::span<const float> values, DType dtype, Shape shape) {
  OCTAVO_CHECK(Elements(shape) == static_cast<int64_t>(values.size()));
  Tensor tensor(dtype, std::move(shape));
  switch (dtype) {
    case DType::kF32:
      if (!values.empty()) std::memcpy(tensor.bytes(), values.data(), values.size_bytes());
      return tensor;
    case DType::kBF16:
    case DType::kF16: {
      auto out = tensor.mutable_data<uint16_t>();
      for (size_t i = 0; i < values.size(); ++i) {
        out[i] = dtype == DType::kBF16 ? Bf16FromFloat(values[i]) : F16FromFloat(values[i]);
      }
      return tensor;
    }
    default:
      return Unsupported("floats are not written as " + std::string(DTypeName(dtype)));
  }
}

float RoundToDType(float value, DType dtype) {
  if (dtype == DType::kBF16) return RoundToBf16(value);
  if (dtype == DType::kF16) return FloatFromF16(F16FromFloat(value));
  OCTAVO_CHECK(dtype == DType::kF32) << DTypeName(dtype);
  return value;
}

}  // namespace octavo
