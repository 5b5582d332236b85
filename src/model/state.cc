#include "model/state.h"

#include <cstring>

#include "base/check.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

void AppendRows(const float* src, int64_t rows, int64_t width, int64_t stride, DType dtype,
                std::vector<std::byte>* dst) {
  const auto row_bytes = static_cast<size_t>(width * DTypeBytes(dtype));
  const size_t old_size = dst->size();
  dst->resize(old_size + static_cast<size_t>(rows) * row_bytes);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = src + row * stride;
    std::byte* to = dst->data() + old_size + static_cast<size_t>(row) * row_bytes;
    if (dtype == DType::kF32) {
      std::memcpy(to, from, row_bytes);
    } else {
      auto* bits = reinterpret_cast<uint16_t*>(to);
      for (int64_t i = 0; i < width; ++i) bits[i] = Bf16FromFloat(from[i]);
    }
  }
}

}  // namespace

FullKvState::FullKvState(int64_t kv_heads, int64_t head_dim, DType dtype)
    : kv_heads_(kv_heads), head_dim_(head_dim), dtype_(dtype) {
  OCTAVO_CHECK(dtype == DType::kF32 || dtype == DType::kBF16) << DTypeName(dtype);
}

void FullKvState::Append(const float* keys, const float* values, int64_t rows, int64_t stride) {
  AppendRows(keys, rows, kv_heads_ * head_dim_, stride, dtype_, &keys_);
  AppendRows(values, rows, kv_heads_ * head_dim_, stride, dtype_, &values_);
  length_ += rows;
}

KvView FullKvState::view() const {
  return {.dtype = dtype_,
          .keys = keys_.data(),
          .values = values_.data(),
          .token_stride = kv_heads_ * head_dim_,
          .head_stride = head_dim_};
}

void FullKvState::Truncate(int64_t length) {
  OCTAVO_CHECK(length >= 0 && length <= length_) << length << " of " << length_;
  length_ = length;
  const auto bytes = static_cast<size_t>(length * kv_heads_ * head_dim_ * DTypeBytes(dtype_));
  keys_.resize(bytes);
  values_.resize(bytes);
}

}  // namespace octavo
