#include "octavo/quantize.h"

#include "api/environment_context.h"
#include "compress/pipeline.h"
#include "compress/recipe.h"

namespace octavo {

Result<QuantizationReport> Quantize(const QuantizeOptions& options, std::string_view recipe,
                                    const Environment& environment) {
  OCTAVO_ASSIGN_OR_RETURN(const auto made, EnvironmentContext::Make(environment));
  const Context& context = made->context();
  OCTAVO_ASSIGN_OR_RETURN(const Recipe parsed, ParseRecipe(recipe, "recipe", context.log));
  return Quantize(options, parsed, context);
}

}  // namespace octavo
