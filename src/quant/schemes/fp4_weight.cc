#include "quant/schemes/fp4_weight.h"

#include "tensor/small_floats.h"

namespace octavo {

DeclaredTensor DeclareFp4Codes(const LinearLayer& layer) {
  return {.suffix = "weight_packed", .dtypes = {DType::kU8}, .shapes = {{layer.n, layer.k / 2}}};
}

Tensor PackFp4(const TensorView& codes) {
  Tensor packed(DType::kU8, {codes.shape.at(0), codes.shape.at(1) / 2});
  const std::span<const uint8_t> in = codes.data<uint8_t>();
  const std::span<uint8_t> out = packed.mutable_data<uint8_t>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<uint8_t>(in[2 * i] | in[2 * i + 1] << 4);
  return packed;
}

Tensor UnpackFp4(const TensorView& packed) {
  Tensor codes(DType::kU8, {packed.shape.at(0), packed.shape.at(1) * 2});
  const std::span<const uint8_t> in = packed.data<uint8_t>();
  const std::span<uint8_t> out = codes.mutable_data<uint8_t>();
  for (size_t i = 0; i < in.size(); ++i) {
    out[2 * i] = in[i] & 15U;
    out[2 * i + 1] = in[i] >> 4;
  }
  return codes;
}

void SetFp4Codes(const TensorView& packed, CodedWeight* weight) {
  weight->matrix.format = CodeFormat::kNibble;
  weight->matrix.table = kE2M1Values;
  weight->matrix.codes = reinterpret_cast<const uint8_t*>(packed.bytes);
  weight->matrix.row_bytes = packed.shape[1];
}

}  // namespace octavo
