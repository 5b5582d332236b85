#include "model/state.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "tensor/convert.h"

namespace octavo {

KvState::KvState(int64_t kv_heads, int64_t head_dim, KvCodec codec)
    : kv_heads_(kv_heads), head_dim_(head_dim), codec_(std::move(codec)) {
  const auto heads = static_cast<size_t>(kv_heads);
  OCTAVO_CHECK(codec_.has_codes()
                   ? codec_.key_scales.size() == heads && codec_.value_scales.size() == heads
                   : codec_.dtype == DType::kF32 || codec_.dtype == DType::kBF16)
      << DTypeName(codec_.dtype);
}

void KvState::AppendTo(const float* src, int64_t rows, int64_t stride,
                       const std::vector<float>& scales, std::vector<std::byte>* dst) const {
  const int64_t width = kv_heads_ * head_dim_;
  const size_t old_size = dst->size();
  dst->resize(old_size + static_cast<size_t>(rows * row_bytes()));
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = src + row * stride;
    std::byte* to = dst->data() + old_size + static_cast<size_t>(row * row_bytes());
    if (codec_.has_codes()) {
      for (int64_t head = 0; head < kv_heads_; ++head) {
        EncodeRow(from + head * head_dim_, head_dim_, scales[static_cast<size_t>(head)],
                  codec_.dtype, to + head * head_dim_);
      }
    } else if (codec_.dtype == DType::kF32) {
      std::memcpy(to, from, static_cast<size_t>(row_bytes()));
    } else {
      auto* bits = reinterpret_cast<uint16_t*>(to);
      for (int64_t i = 0; i < width; ++i) bits[i] = Bf16FromFloat(from[i]);
    }
  }
}

void KvState::AppendRows(const float* keys, const float* values, int64_t rows, int64_t stride) {
  AppendTo(keys, rows, stride, codec_.key_scales, &keys_);
  AppendTo(values, rows, stride, codec_.value_scales, &values_);
}

KvView KvState::ViewFrom(int64_t first) const {
  return {.dtype = codec_.dtype,
          .keys = keys_.data() + first * row_bytes(),
          .values = values_.data() + first * row_bytes(),
          .token_stride = kv_heads_ * head_dim_,
          .head_stride = head_dim_,
          .key_scales = codec_.has_codes() ? codec_.key_scales.data() : nullptr,
          .value_scales = codec_.has_codes() ? codec_.value_scales.data() : nullptr};
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

WindowKvState::WindowKvState(int64_t kv_heads, int64_t head_dim, KvCodec codec, int64_t window)
    : KvState(kv_heads, head_dim, std::move(codec)), window_(window) {
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
