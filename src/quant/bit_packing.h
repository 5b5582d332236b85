// Codes of 1 to 8 bits in 32-bit words, as pack-quantized stores them (checkpoint-format 2.3).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "tensor/tensor.h"

namespace octavo {

// Words that `count` codes fill: ceil(count * bits / 32).
inline int64_t PackedWords(int64_t count, int bits) {
  return (count * bits + 31) / 32;
}

// I8 codes [rows, columns], each -2^(bits - 1) .. 2^(bits - 1) - 1 -> I32 [rows, words]: rows are
// streams of bits, lowest first, each code stored plus 2^(bits - 1).
Tensor PackRows(const TensorView& codes, int bits);
// The same along dimension 0: I8 [rows, columns] -> I32 [words, columns].
Tensor PackColumns(const TensorView& codes, int bits);

// The inverse. `words` may also be of files written before streams crossed words, whose words hold
// floor(32 / bits) codes each; its width tells. InvalidArgument for any other width.
Result<Tensor> UnpackRows(const TensorView& words, int64_t columns, int bits);
Result<Tensor> UnpackColumns(const TensorView& words, int64_t rows, int bits);

}  // namespace octavo
