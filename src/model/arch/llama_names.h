// The tensor names of Llama, which most families after it kept.
#pragma once

#include "model/architecture.h"

namespace octavo {

ModuleNames LlamaNames(const ModelSpec& spec);

}  // namespace octavo
