#include <algorithm>
#include <cstring>

#include "kernels/matmul_coded/kernels.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

float ScaleAt(const CodedMatrix& w, int64_t unit) {
  const auto* bytes = static_cast<const uint8_t*>(w.scales);
  switch (w.scale_format) {
    case ScaleFormat::kF32: {
      float value;
      std::memcpy(&value, bytes + unit * 4, sizeof(value));
      return value * w.multiplier;
    }
    case ScaleFormat::kBf16: {
      uint16_t bits;
      std::memcpy(&bits, bytes + unit * 2, sizeof(bits));
      return FloatFromBf16(bits) * w.multiplier;
    }
    case ScaleFormat::kE4M3:
      return FloatFromE4M3(bytes[unit]) * w.multiplier;
    case ScaleFormat::kE8M0:
      return FloatFromE8M0(bytes[unit]) * w.multiplier;
  }
  return 0;
}

namespace {

float ValueOf(const CodedMatrix& w, const uint8_t* row, int64_t column) {
  switch (w.format) {
    case CodeFormat::kNibble:
      return w.table[static_cast<size_t>(row[column / 2] >> (column % 2 * 4) & 15)];
    case CodeFormat::kInt8:
      return static_cast<float>(static_cast<int8_t>(row[column]));
    case CodeFormat::kE4M3:
      return FloatFromE4M3(row[column]);
  }
  return 0;
}

void Decode(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  const int64_t first_unit = row / w.unit_rows * w.scale_columns;
  for (int64_t column = begin; column < begin + count;) {
    const int64_t unit = first_unit + column / w.unit_columns;
    const int64_t end = std::min(begin + count, (column / w.unit_columns + 1) * w.unit_columns);
    const float scale = ScaleAt(w, unit);
    const float zero_point =
        w.zero_points == nullptr ? 0.0F : static_cast<float>(w.zero_points[unit]);
    for (; column < end; ++column)
      out[column - begin] = (ValueOf(w, codes, column) - zero_point) * scale;
  }
}

void Dot(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input, float* y,
         int64_t ldy) {
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t i = 0; i < input.m; ++i) y[i * ldy + j] = 0;
    for (int64_t begin = 0; begin < w.k; begin += kInputBlock) {
      float decoded[kInputBlock];
      const int64_t count = std::min(kInputBlock, w.k - begin);
      Decode(w, first + j, begin, count, decoded);
      for (int64_t i = 0; i < input.m; ++i) {
        const float* x = input.x + i * input.ldx + begin;
        float sum = 0;
        for (int64_t l = 0; l < count; ++l) sum += x[l] * decoded[l];
        y[i * ldy + j] += sum;
      }
    }
  }
}

}  // namespace

void DecodeNibblesRef(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  Decode(w, row, begin, count, out);
}
void DecodeInt8Ref(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  Decode(w, row, begin, count, out);
}
void DecodeE4M3Ref(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  Decode(w, row, begin, count, out);
}

void DotNibblesRef(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                   float* y, int64_t ldy) {
  Dot(w, first, rows, input, y, ldy);
}
void DotInt8CodesRef(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                     float* y, int64_t ldy) {
  Dot(w, first, rows, input, y, ldy);
}
void DotE4M3Ref(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                float* y, int64_t ldy) {
  Dot(w, first, rows, input, y, ldy);
}

}  // namespace octavo
