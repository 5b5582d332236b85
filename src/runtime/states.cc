#include "runtime/states.h"

namespace octavo {

SequenceState MakeSequenceState(const Model& model, DType kv_dtype) {
  SequenceState state;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    state.layers.push_back(
        std::make_unique<FullKvState>(model.spec.num_kv_heads, model.spec.head_dim, kv_dtype));
  }
  return state;
}

}  // namespace octavo
