#include "runtime/states.h"

namespace octavo {

SequenceState MakeSequenceState(const Model& model, DType kv_dtype) {
  SequenceState state;
  const ModelSpec& spec = model.spec;
  for (int64_t i = 0; i < spec.num_layers; ++i) {
    const KvCodec& declared = model.blocks[static_cast<size_t>(i)].cache;
    const KvCodec codec = declared.has_codes() ? declared : KvCodec(kv_dtype);
    if (const int64_t window = spec.window(i); window > 0) {
      state.layers.push_back(
          std::make_unique<WindowKvState>(spec.num_kv_heads, spec.head_dim, codec, window));
    } else {
      state.layers.push_back(
          std::make_unique<FullKvState>(spec.num_kv_heads, spec.head_dim, codec));
    }
  }
  return state;
}

}  // namespace octavo
