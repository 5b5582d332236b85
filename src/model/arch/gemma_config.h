// What the Gemma families share.
#pragma once

#include "model/arch/config_reader.h"
#include "model/architecture.h"

namespace octavo {

// ReadCommonConfig, and: norms less one, embeddings times sqrt(hidden_size), GELU with tanh, tied.
Result<ModelSpec> ReadGemmaConfig(const Value& config, ConfigDefaults defaults);

// Llama's names, with Gemma 2's and 3's four norms.
ModuleNames GemmaNames(const ModelSpec& spec);

}  // namespace octavo
