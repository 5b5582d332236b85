// A model in GGUF: which tensor is which, and the config.json it stands for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "io/gguf.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace octavo {

struct ImportedTensor {
  std::string name;  // as Hugging Face calls it
  const GgufTensor* source = nullptr;
  // Not zero where llama.cpp has put the rows in another order: see SourceRow.
  int64_t rotary_heads = 0;
};

struct ImportedModel {
  Value config;             // config.json
  Value generation_config;  // generation_config.json
  DType dtype = DType::kBF16;
  std::vector<ImportedTensor> tensors;
};

// Reads sizes from the metadata and finds every tensor by name and shape. The weights become
// `dtype`; where none is given, F32 or F16 if every matrix of the file is that, else BF16. Refused
// by name: architectures that are not in gguf_families.cc, missing and unknown tensors, experts,
// rotary scaling that has no place in config.json. `file` must outlive the result.
Result<ImportedModel> PlanModel(const GgufFile& file, std::optional<DType> dtype);

// The row of the file that holds row `row` of the Hugging Face tensor of `rows` rows: each of the
// heads has its two halves interleaved in the file. The same for 0 heads.
int64_t SourceRow(int64_t row, int64_t rows, int64_t rotary_heads);

}  // namespace octavo
