// What the families share: seeded inputs, the shapes of real models, and turns through copies.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace octavo {

// Roughly normal floats; whole codes. The same in every run.
Tensor RandomTensor(DType dtype, Shape shape);

struct MatrixShape {
  const char* name;
  int64_t n;
  int64_t k;
};

inline constexpr MatrixShape kMatrixShapes[] = {
    {"smollm2-135m o_proj", 576, 576},      {"smollm2-135m qkv", 960, 576},
    {"smollm2-135m gate_up", 3072, 576},    {"smollm2-135m down_proj", 576, 1536},
    {"llama-3.1-8b o_proj", 4096, 4096},    {"llama-3.1-8b up_proj", 14336, 4096},
    {"llama-3.1-8b down_proj", 4096, 14336}};

// Up to so many rows a matmul is measured on weights that come from memory.
inline constexpr int64_t kFewRows = 32;

// How many matrices of `bytes` make `memory` bytes; one for more than few rows.
inline int64_t CopiesFor(int64_t m, int64_t bytes, int64_t memory) {
  return m > kFewRows ? 1 : (memory + bytes - 1) / bytes;
}

// 0, 1, ..., count - 1, 0, ...
class Turns {
 public:
  explicit Turns(size_t count) : count_(count) {}
  size_t Next() {
    next_ = next_ + 1 < count_ ? next_ + 1 : 0;
    return next_;
  }

 private:
  size_t count_;
  size_t next_ = 0;
};

}  // namespace octavo
