// The forward pass in three calls, Embed, Block and Head, over a ragged batch of new tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/graph.h"
#include "model/state.h"

namespace octavo {

// New tokens of one or more sequences. The rows of one sequence are consecutive and at consecutive
// positions, the first at the length its state has; `sequence` is nondecreasing.
struct Batch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> sequence;  // index into the states passed along
  std::vector<int64_t> position;
  std::vector<uint8_t> want_logits;  // whether Head computes this row
  // How long each sequence will be when what is being fed is in, of which this batch may be a
  // piece: rotary embedding that depends on the length goes by it. Empty: as long as this batch
  // makes it.
  std::vector<int64_t> lengths;

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t wanted_rows() const;
  // Empties it and keeps its memory.
  void Clear();
  // One more token of a sequence.
  void Add(int32_t token, int32_t in_sequence, int64_t at_position, bool logits);
};

// Called before each group of linear layers with the rows they are about to read, [m, k]:
// calibration, dumps and debugging all use it.
using Tap = std::function<void(const LinearGroup& group, const Rows& input)>;

// Queries, keys and values of the rows of a batch, [m, heads * head_dim], rotated and transformed,
// before anything is rounded or kept.
struct AttentionRows {
  Rows queries, keys, values;
};
// Called in each block before its attention: scales of what is kept are found with it.
using AttentionTap = std::function<void(const AttentionRows& rows)>;

// y [m, group.n()] = group(x). What shares its input quantizes it once; `quantized` is scratch.
void MultiplyGroup(const LinearGroup& group, const Rows& x, QuantizedRows* quantized, float* y,
                   const Context& context);

// Owns the scratch memory of passes over one model; one pass at a time.
class Forward {
 public:
  // `model` and `context` outlive the object.
  Forward(const Model& model, const Context& context);

  void set_tap(Tap tap) { tap_ = std::move(tap); }
  void set_attention_tap(AttentionTap tap) { attention_tap_ = std::move(tap); }

  // Rows of the embedding: hidden [m, hidden_size] float32. InvalidArgument for a token outside the
  // vocabulary.
  Status Embed(const Batch& batch, std::span<float> hidden);
  // One decoder block in place, over hidden [m, hidden_size]; states[s]->layers[block_index] grows
  // by the rows of sequence s. The block is loaded. For a tap alone the block ends with the tap of
  // its last group, or with that of its attention; hidden is scratch afterwards.
  enum class Until : uint8_t { kEnd, kLastTap, kAttentionTap };
  void Block(int64_t block_index, const Batch& batch, std::span<SequenceState* const> states,
             std::span<float> hidden, Until until = Until::kEnd);
  // Final norm and head of the wanted rows: logits [wanted rows, vocab_size].
  void Head(const Batch& batch, std::span<const float> hidden, std::span<float> logits);

 private:
  // The tap, then y [m, group.n()] = group(x).
  void RunGroup(const LinearGroup& group, const Rows& x, std::span<float> y);
  void Attention(const octavo::Block& block, int64_t block_index, const Batch& batch,
                 std::span<SequenceState* const> states);
  // The queries and keys of qkv_, in place, as attention reads them: rotated, and transformed as
  // the checkpoint asks; then the tap.
  void PrepareHeads(const octavo::Block& block, int64_t block_index, const Batch& batch);
  // RMSNorm of queries and keys, in place; rows lie `stride` floats apart.
  void NormQueriesAndKeys(const octavo::Block& block, int64_t rows, float* queries, float* keys,
                          int64_t stride);
  // What a head's rotation at some positions is.
  struct RopeTable {
    std::vector<float> frequencies;  // [rotary_dim / 2], of the latest sequence
    std::vector<float> cos, sin;     // [m, rotary_dim / 2]
    std::vector<int64_t> positions;  // those that cos and sin are of
    std::vector<int64_t> lengths;    // of the rows' sequences
  };
  void PrepareRope(const RopeSpec& rope, const Batch& batch, RopeTable* table);
  // Queries times what their positions ask for, in place (spec.query_growth).
  void GrowQueries(const Batch& batch, float* queries, int64_t stride);
  // Queries to their codes and back, in place.
  void RoundQueries(const octavo::Block& block, int64_t rows, float* queries, int64_t stride);
  // RMSNorm of each of `heads` heads, in place; rows of x lie `stride` floats apart.
  void NormHeads(const Tensor& weight, float* x, int64_t stride, int64_t m, int64_t heads);

  const Model& model_;
  const Context& context_;
  Tap tap_;
  AttentionTap attention_tap_;
  RopeTable rope_;         // of all layers, or those without a window
  RopeTable window_rope_;  // of layers with one, where it is another

  // Scratch, sized by the largest batch so far.
  QuantizedRows quantized_;
  std::vector<float> normed_;     // [m, hidden]
  std::vector<float> qkv_;        // [m, q + k + v]
  std::vector<float> attended_;   // [m, q]
  std::vector<float> projected_;  // [m, hidden]
  std::vector<float> gate_up_;    // [m, 2 intermediate]
  std::vector<float> activated_;  // [m, intermediate]
};

}  // namespace octavo
