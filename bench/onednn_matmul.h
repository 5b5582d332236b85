// The rival: oneDNN's matmul with weights packed beforehand.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/cpu.h"
#include "tensor/tensor.h"

namespace octavo {

// y [m, n] f32 = x [m, k] w^T on `threads` threads with the instructions that `isa` allows, x and w
// in the same type: I8 (s8 x s8, a scale for each column), BF16 or F32.
class OnednnMatmul {
 public:
  // w [n, k]; it is packed, not kept. x [m, k] lives as long as this. Null where oneDNN has no
  // matmul for the type on this processor.
  static std::unique_ptr<OnednnMatmul> Make(const TensorView& w, std::span<const float> scales,
                                            const TensorView& x, float* y, Isa isa, int threads);
  ~OnednnMatmul();
  void Run();

 private:
  struct Primitive;
  explicit OnednnMatmul(std::unique_ptr<Primitive> primitive);
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace octavo
