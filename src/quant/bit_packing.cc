#include "quant/bit_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace octavo {

namespace {

// A line of words, `stride` words apart: a row or a column of the packed tensor. Bytes may be
// unaligned, they come from files.
struct Words {
  const std::byte* bytes;
  int64_t stride;

  uint32_t at(int64_t i) const {
    uint32_t word;
    std::memcpy(&word, bytes + i * stride * 4, sizeof(word));
    return word;
  }
};

// Codes that begin every `per_word`-th of a word; 0: a stream that crosses words.
void UnpackLine(const Words& words, int64_t count, int bits, int64_t per_word, int8_t* codes,
                int64_t stride) {
  const uint32_t mask = (1U << bits) - 1;
  const int offset = 1 << (bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bit = per_word > 0 ? i / per_word * 32 + i % per_word * bits : i * bits;
    const int64_t shift = bit % 32;
    uint32_t code = words.at(bit / 32) >> shift;
    if (shift + bits > 32) code |= words.at(bit / 32 + 1) << (32 - shift);
    codes[i * stride] = static_cast<int8_t>(static_cast<int>(code & mask) - offset);
  }
}

void PackLine(const int8_t* codes, int64_t stride, int64_t count, int bits, uint32_t* words,
              int64_t word_stride) {
  const uint32_t mask = (1U << bits) - 1;
  const int offset = 1 << (bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t code = static_cast<uint32_t>(codes[i * stride] + offset) & mask;
    const int64_t shift = i * bits % 32;
    uint32_t* word = words + i * bits / 32 * word_stride;
    *word |= code << shift;
    if (shift + bits > 32) word[word_stride] |= code >> (32 - shift);
  }
}

// 0 for a stream, codes in a word for the old layout.
Result<int64_t> CodesPerWord(int64_t width, int64_t count, int bits) {
  if (width == PackedWords(count, bits)) return 0;
  const int64_t per_word = 32 / bits;
  if (width == (count + per_word - 1) / per_word) return per_word;
  return InvalidArgument(fmt::format("{} words cannot hold {} codes of {} bits, expected {}", width,
                                     count, bits, PackedWords(count, bits)));
}

Status CheckWords(const TensorView& words) {
  if (words.dtype == DType::kI32 && words.shape.size() == 2) return OkStatus();
  return InvalidArgument(fmt::format("packed codes are {} {}, expected I32 of two dimensions",
                                     DTypeName(words.dtype), ShapeString(words.shape)));
}

uint32_t* AsWords(Tensor* tensor) {
  return reinterpret_cast<uint32_t*>(tensor->bytes());
}

}  // namespace

Tensor PackRows(const TensorView& codes, int bits) {
  const int64_t rows = codes.shape.at(0);
  const int64_t columns = codes.shape.at(1);
  const int64_t width = PackedWords(columns, bits);
  Tensor packed = Tensor::Zeros(DType::kI32, {rows, width});
  const int8_t* values = codes.data<int8_t>().data();
  for (int64_t row = 0; row < rows; ++row)
    PackLine(values + row * columns, 1, columns, bits, AsWords(&packed) + row * width, 1);
  return packed;
}

Tensor PackColumns(const TensorView& codes, int bits) {
  const int64_t rows = codes.shape.at(0);
  const int64_t columns = codes.shape.at(1);
  Tensor packed = Tensor::Zeros(DType::kI32, {PackedWords(rows, bits), columns});
  const int8_t* values = codes.data<int8_t>().data();
  for (int64_t column = 0; column < columns; ++column)
    PackLine(values + column, columns, rows, bits, AsWords(&packed) + column, columns);
  return packed;
}

Result<Tensor> UnpackRows(const TensorView& words, int64_t columns, int bits) {
  OCTAVO_RETURN_IF_ERROR(CheckWords(words));
  const int64_t rows = words.shape[0];
  const int64_t width = words.shape[1];
  OCTAVO_ASSIGN_OR_RETURN(const int64_t per_word, CodesPerWord(width, columns, bits));
  Tensor codes(DType::kI8, {rows, columns});
  int8_t* out = codes.mutable_data<int8_t>().data();
  for (int64_t row = 0; row < rows; ++row)
    UnpackLine({words.bytes + row * width * 4, 1}, columns, bits, per_word, out + row * columns, 1);
  return codes;
}

Result<Tensor> UnpackColumns(const TensorView& words, int64_t rows, int bits) {
  OCTAVO_RETURN_IF_ERROR(CheckWords(words));
  const int64_t columns = words.shape[1];
  OCTAVO_ASSIGN_OR_RETURN(const int64_t per_word, CodesPerWord(words.shape[0], rows, bits));
  Tensor codes(DType::kI8, {rows, columns});
  int8_t* out = codes.mutable_data<int8_t>().data();
  for (int64_t column = 0; column < columns; ++column)
    UnpackLine({words.bytes + column * 4, columns}, rows, bits, per_word, out + column, columns);
  return codes;
}

}  // namespace octavo
