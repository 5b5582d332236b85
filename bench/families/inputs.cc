#include "bench/families/inputs.h"

#include "base/check.h"
#include "base/rng.h"
#include "tensor/convert.h"

namespace octavo {

Tensor RandomTensor(DType dtype, Shape shape) {
  Rng rng(7);
  if (dtype == DType::kI8) {
    Tensor codes(dtype, std::move(shape));
    for (int8_t& code : codes.mutable_data<int8_t>()) {
      code = static_cast<int8_t>(static_cast<int>(rng.Below(255)) - 127);
    }
    return codes;
  }
  std::vector<float> values(static_cast<size_t>(Elements(shape)));
  for (float& value : values) value = static_cast<float>(rng.Uniform() + rng.Uniform() - 1.0);
  Result<Tensor> tensor = FromFloat(values, dtype, std::move(shape));
  OCTAVO_CHECK(tensor.ok()) << tensor.status().message();
  return std::move(*tensor);
}

}  // namespace octavo
