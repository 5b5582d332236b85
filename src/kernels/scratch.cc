#include "kernels/scratch.h"

#include <algorithm>

#include "tensor/tensor.h"

namespace octavo {

float* ThreadScratch(int64_t count) {
  thread_local Tensor buffer;
  if (buffer.empty() || buffer.elements() < count) {
    buffer = Tensor();  // the old one goes before the new one comes
    buffer = Tensor(DType::kF32, {std::max<int64_t>(count, 1)});
  }
  return buffer.mutable_data<float>().data();
}

}  // namespace octavo
