// Flags of `compare` that look into the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "eval/comparison.h"
#include "eval/windows.h"
#include "runtime/load.h"

namespace CLI {
class App;
}  // namespace CLI

namespace octavo {

struct LayerFlags {
  std::optional<int64_t> rows;  // of the tables; 0: all; none: layers are not compared
  bool sensitivity = false;
  int64_t windows = 4;  // the first ones

  bool any() const { return rows || sensitivity; }
};

void AddLayerFlags(CLI::App& app, LayerFlags* flags);

// Fills comparison->layers and ->sensitivities, one of each for each model, as the flags ask.
// Models are changed while it runs.
Status MeasureLayers(const LayerFlags& flags, LoadedModel* base,
                     std::span<LoadedModel* const> models, std::span<const Window> windows,
                     const Context& context, Comparison* comparison);

// The tables of one model, for the terminal.
std::string LayerText(const LayerFlags& flags, const Comparison& comparison, size_t model);

}  // namespace octavo
