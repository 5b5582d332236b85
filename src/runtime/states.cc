#include "runtime/states.h"

namespace octavo {

SequenceState MakeSequenceState(const Model& model, DType kv_dtype) {
  SequenceState state;
  const ModelSpec& spec = model.spec;
  for (int64_t i = 0; i < spec.num_layers; ++i) {
    if (const int64_t window = spec.window(i); window > 0) {
      state.layers.push_back(
          std::make_unique<WindowKvState>(spec.num_kv_heads, spec.head_dim, kv_dtype, window));
    } else {
      state.layers.push_back(
          std::make_unique<FullKvState>(spec.num_kv_heads, spec.head_dim, kv_dtype));
    }
  }
  return state;
}

}  // namespace octavo
