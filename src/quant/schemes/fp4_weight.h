// E2M1 weights as NVFP4 and MXFP4 store them, two codes in a byte: what their schemes share.
#pragma once

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"

namespace octavo {

// weight_packed, U8 [n, k / 2].
DeclaredTensor DeclareFp4Codes(const LinearLayer& layer);

// U8 [n, k], one code a byte -> weight_packed, and back.
Tensor PackFp4(const TensorView& codes);
Tensor UnpackFp4(const TensorView& packed);

// The matrix reads the codes where they lie.
void SetFp4Codes(const TensorView& packed, CodedWeight* weight);

}  // namespace octavo
