// The flags of commands that generate text, and what they say of a result.
#pragma once

#include <string>

#include "runtime/generation.h"

namespace CLI {
class App;
}  // namespace CLI

namespace octavo {

// Temperature, filters, penalties, seed, --max-tokens and --stop.
void AddGenerationFlags(CLI::App& app, GenerateOptions* options);

// "prompt 12 tokens, 900 tokens/s; answer 80 tokens, 95.1 tokens/s; ended by eos". Tokens of the
// prompt that were remembered do not count.
std::string SpeedLine(const GenerateResult& result);

}  // namespace octavo
