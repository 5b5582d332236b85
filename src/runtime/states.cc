#include "runtime/states.h"

namespace octavo {

namespace {

KvCodec CodecOf(const Block& block, DType kv_dtype) {
  return block.cache.has_codes() ? block.cache : KvCodec(kv_dtype);
}

}  // namespace

SequenceState MakeSequenceState(const Model& model, DType kv_dtype) {
  SequenceState state;
  const ModelSpec& spec = model.spec;
  for (int64_t i = 0; i < spec.num_layers; ++i) {
    const KvCodec codec = CodecOf(model.blocks[static_cast<size_t>(i)], kv_dtype);
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

int64_t CacheBytesOfToken(const Model& model, DType kv_dtype) {
  int64_t bytes = 0;
  for (const Block& block : model.blocks)
    bytes += 2 * model.spec.kv_size() * DTypeBytes(CodecOf(block, kv_dtype).dtype);
  return bytes;
}

}  // namespace octavo
