// The tensor names of Llama, which most families after it kept.
#pragma once

#include "model/architecture.h"

namespace octavo {

ModuleNames LlamaNames(const ModelSpec& spec);

// The same where norms are behind attention and MLP alone (OLMo 2, EXAONE 4).
ModuleNames PostNormNames(const ModelSpec& spec);

}  // namespace octavo
