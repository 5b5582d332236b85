// Which layer gets which scheme from which modifier, and whether that can be made.
#pragma once

#include <map>
#include <string>

#include "base/log.h"
#include "base/status.h"
#include "compress/recipe.h"
#include "model/graph.h"

namespace octavo {

// Layer -> the modifier that quantizes it.
using LayerOwners = std::map<std::string, const Modifier*>;

// Gives each linear layer of the graph, the head too, the scheme of the last modifier that matches
// it; likewise the embedding, attention, and the cache. Patterns that match nothing are a warning
// each. Refused by name, with the remedy: a recipe or modifier that matches no layer, a scheme that
// cannot be made (with the presets that can), a quantized embedding that no engine looks up, layers
// that share an input but would get different schemes.
Result<LayerOwners> ResolveRecipe(const Recipe& recipe, Model* target, Logger& log);

// Every group of linear layers: the blocks' in order, then the head.
std::vector<LinearGroup*> AllGroups(Model* model);

}  // namespace octavo
