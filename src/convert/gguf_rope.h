// Rotary scaling of a GGUF file as config.json's rope_scaling.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/value.h"
#include "io/gguf.h"

namespace octavo {

// What rope_freqs.weight, the divisors of the head_dim / 2 frequencies, must be a result of.
struct GgufRope {
  double theta = 0;
  int64_t head_dim = 0;
};

// Null, or an object of rope_type linear, yarn or llama3. `freqs` is the tensor rope_freqs.weight
// or null. Unsupported: other types, keys that have no place in config.json, and divisors that are
// not those of Llama 3 (the file names them, not the rule they come from).
Result<Value> ReadRopeScaling(const Value& metadata, std::string_view architecture,
                              const GgufRope& rope, const GgufTensor* freqs);

// The number of which `value` is the nearest float32, with the fewest digits: 9.99999974e-06 is
// 1e-05.
double DecimalOfFloat(double value);

}  // namespace octavo
