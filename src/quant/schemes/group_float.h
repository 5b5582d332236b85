// How NVFP4, MXFP4 and MXFP8 are declared: small floats in groups, and inputs alike or none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quant/scheme.h"

namespace octavo {

struct GroupFloatForm {
  std::string_view type;      // "float4"
  std::string_view strategy;  // "group"
  int64_t group_size = 0;
  std::string_view scale_dtype;  // "torch.uint8"; empty: not looked at
  std::string_view format;
};

// Scheme::differences: inputs of the weights' form, or inputs that stay floats.
std::vector<std::string> DifferencesWithInput(const GroupFloatForm& form,
                                              const QuantizationScheme& declared);
std::vector<std::string> DifferencesWithoutInput(const GroupFloatForm& form,
                                                 const QuantizationScheme& declared);

}  // namespace octavo
