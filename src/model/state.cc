#include "model/state.h"

#include <cstring>

#include "base/check.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

void AppendTo(const float* src, int64_t rows, int64_t width, int64_t stride, DType dtype,
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

KvState::KvState(int64_t kv_heads, int64_t head_dim, DType dtype)
    : kv_heads_(kv_heads), head_dim_(head_dim), dtype_(dtype) {
  OCTAVO_CHECK(dtype == DType::kF32 || dtype == DType::kBF16) << DTypeName(dtype);
}

void KvState::AppendRows(const float* keys, const float* values, int64_t rows, int64_t stride) {
  AppendTo(keys, rows, kv_heads_ * head_dim_, stride, dtype_, &keys_);
  AppendTo(values, rows, kv_heads_ * head_dim_, stride, dtype_, &values_);
}

KvView KvState::ViewFrom(int64_t first) const {
  return {.dtype = dtype_,
          .keys = keys_.data() + first * row_bytes(),
          .values = values_.data() + first * row_bytes(),
          .token_stride = kv_heads_ * head_dim_,
          .head_stride = head_dim_};
}

void FullKvState::Append(const float* keys, const float* values, int64_t rows, int64_t stride) {
  AppendRows(keys, values, rows, stride);
  length_ += rows;
}

void FullKvState::Truncate(int64_t length) {
  OCTAVO_CHECK(CanTruncate(length)) << length << " of " << length_;
  length_ = length;
  keys_.resize(static_cast<size_t>(length * row_bytes()));
  values_.resize(static_cast<size_t>(length * row_bytes()));
}

WindowKvState::WindowKvState(int64_t kv_heads, int64_t head_dim, DType dtype, int64_t window)
    : KvState(kv_heads, head_dim, dtype), window_(window) {
  OCTAVO_CHECK(window >= 1) << window;
}

void WindowKvState::Append(const float* keys, const float* values, int64_t rows, int64_t stride) {
  const int64_t begin = std::max(begin_, FirstSeen(length_));
  skipped_ += begin - begin_;
  begin_ = begin;
  if (skipped_ >= length_ - begin_) {
    const int64_t bytes = skipped_ * row_bytes();
    keys_.erase(keys_.begin(), keys_.begin() + bytes);
    values_.erase(values_.begin(), values_.begin() + bytes);
    skipped_ = 0;
  }
  AppendRows(keys, values, rows, stride);
  length_ += rows;
}

bool WindowKvState::CanTruncate(int64_t length) const {
  return length == 0 || (length > 0 && length <= length_ && begin_ <= FirstSeen(length));
}

void WindowKvState::Truncate(int64_t length) {
  OCTAVO_CHECK(CanTruncate(length)) << length << " of " << begin_ << " to " << length_;
  length_ = length;
  if (length == 0) begin_ = skipped_ = 0;
  const auto bytes = static_cast<size_t>((skipped_ + length_ - begin_) * row_bytes());
  keys_.resize(bytes);
  values_.resize(bytes);
}

}  // namespace octavo
