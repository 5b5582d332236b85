// Rotating a model before it is quantized: norms and orthogonal matrices are folded into its
// weights as these are read, and what must be done while it runs is declared (quantization 5.6,
// 5.7).
#pragma once

#include "base/context.h"
#include "base/status.h"
#include "compress/plan.h"
#include "compress/recipe.h"
#include "runtime/load.h"

namespace octavo {

// Does to `source` what the recipe's modifiers want (Modifier::Transforms), one after the other, if
// any: from then on its checkpoint has the rotated tensors, made in float64 when they are found
// (float32 for layers that the plan quantizes, others as they are stored), the matrices of
// transforms at run time, and a head of its own where the embedding's was rotated. Sets the
// transforms of the plan's graph and of the source's, and the plan's fields of them. `context`
// outlives the source. Refused by name: a transform behind a modifier that makes none, a size that
// has no matrix or does not divide what it is for, targets that match nothing, layers that share an
// input but not its transforms.
Status RotateModel(const Recipe& recipe, LoadedModel* source, QuantizationPlan* plan,
                   const Context& context);

}  // namespace octavo
