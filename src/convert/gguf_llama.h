// The llama architecture in GGUF: which tensor is which, and the config.json it stands for.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "io/gguf.h"
#include "tensor/shape.h"

namespace octavo {

struct ImportedTensor {
  std::string name;  // as Hugging Face calls it
  const GgufTensor* source = nullptr;
  // Not zero for q and k projections: llama.cpp stores each head's rows so that rotary partners are
  // neighbours (2i, 2i + 1), Hugging Face has them half a head apart (i, i + d/2).
  int64_t rotary_heads = 0;
};

struct ImportedModel {
  Value config;             // config.json
  Value generation_config;  // generation_config.json
  std::vector<ImportedTensor> tensors;
};

// Reads sizes from the metadata and finds every tensor by name and shape. Refused by name: other
// architectures, missing and unknown tensors, experts, rotary scaling that has no place in
// config.json. `file` must outlive the result.
Result<ImportedModel> PlanLlamaImport(const GgufFile& file);

// The row of the file that holds row `row` of the Hugging Face tensor of `rows` rows.
int64_t SourceRow(int64_t row, int64_t rows, int64_t rotary_heads);

}  // namespace octavo
