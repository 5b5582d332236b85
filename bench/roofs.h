// What this machine can do, measured in the same run as the kernels: the roofs their speed is a
// share of.
#pragma once

namespace octavo {

// Per second, with `threads` threads at once. Zero where the machine lacks the instructions.
struct Roofs {
  double int8_ops = 0;    // vpdpbusd on 512 bits, two operations a multiply-add
  double float_ops = 0;   // f32 FMA on 512 bits
  double read_bytes = 0;  // streaming reads from memory
};

Roofs MeasureRoofs(int threads);

}  // namespace octavo
