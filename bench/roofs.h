// What this machine can do, measured in the same run as what is compared with it.
#pragma once

#include <cstdint>
#include <map>

#include "base/context.h"

namespace octavo {

// Operations a second of all threads together, a multiply-add being two; zero where the processor
// lacks the instruction.
struct ArithmeticRoofs {
  double int8 = 0;  // vpdpbusd on 512 bits; vpmaddubsw, vpmaddwd, vpaddd on 256
  double bf16 = 0;  // vdpbf16ps on 512 bits
  double f32 = 0;   // vfmadd on 512 or 256 bits
};

// Chains of one instruction that nothing holds up. `seconds` is spent on each.
ArithmeticRoofs MeasureArithmetic(double seconds, const Context& context);

// Bytes a second of all threads together reading `footprint` bytes again and again: the last-level
// cache may be as large as a model, so a rate means nothing without what it was measured on.
double MeasureReadRate(int64_t footprint, double seconds, const Context& context);

// What a whole model is compared with.
struct Roofs {
  double int8_ops = 0;
  double float_ops = 0;
  double read_bytes = 0;  // from a footprint of 1 GiB
};
Roofs MeasureRoofs(int threads);

// Read rates that are measured when they are first asked for, one for each power of two.
class ReadRates {
 public:
  ReadRates(double seconds, const Context& context) : seconds_(seconds), context_(context) {}
  double BytesPerSecond(int64_t footprint);
  // Footprint -> bytes a second, of all that were asked for.
  const std::map<int64_t, double>& measured() const { return measured_; }

 private:
  double seconds_;
  const Context& context_;
  std::map<int64_t, double> measured_;
};

}  // namespace octavo
