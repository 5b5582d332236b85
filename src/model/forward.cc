#include "model/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/activate/activate.h"
#include "kernels/add_rows/add_rows.h"
#include "kernels/attention/attention.h"
#include "kernels/rope/rope.h"
#include "kernels/round_rows/round_rows.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Grows a scratch buffer to at least rows x columns floats.
std::span<float> Scratch(std::vector<float>* buffer, int64_t rows, int64_t columns) {
  const auto size = static_cast<size_t>(rows * columns);
  if (buffer->size() < size) buffer->resize(size);
  return std::span<float>(*buffer).first(size);
}

// The end of the run of rows, from `first` on, that belong to one sequence.
int64_t RunEnd(const Batch& batch, int64_t first) {
  const auto begin = batch.sequence.begin() + first;
  return first +
         (std::find_if(begin, batch.sequence.end(), [&](int32_t s) { return s != *begin; }) -
          begin);
}

// The length of each row's sequence.
std::vector<int64_t> LengthsOfRows(const Batch& batch) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < batch.rows();) {
    const int64_t end = RunEnd(batch, row);
    const int64_t length =
        batch.lengths.empty()
            ? batch.position[static_cast<size_t>(end - 1)] + 1
            : batch.lengths[static_cast<size_t>(batch.sequence[static_cast<size_t>(row)])];
    lengths.insert(lengths.end(), static_cast<size_t>(end - row), length);
    row = end;
  }
  return lengths;
}

void Multiply(float factor, std::span<float> values) {
  if (factor == 1) return;
  for (float& value : values) value *= factor;
}

}  // namespace

int64_t Batch::wanted_rows() const {
  return std::count(want_logits.begin(), want_logits.end(), uint8_t{1});
}

void Batch::Clear() {
  tokens.clear();
  sequence.clear();
  position.clear();
  want_logits.clear();
  lengths.clear();
}

void Batch::Add(int32_t token, int32_t in_sequence, int64_t at_position, bool logits) {
  tokens.push_back(token);
  sequence.push_back(in_sequence);
  position.push_back(at_position);
  want_logits.push_back(logits ? 1 : 0);
}

void MultiplyGroup(const LinearGroup& group, const Rows& x, QuantizedRows* quantized, float* y,
                   const Context& context) {
  for (size_t i = 0; i < group.parts.size(); ++i) {
    group.parts[i]->QuantizeRows(x, quantized, context);
    group.parts[i]->Multiply(*quantized, y + group.part_columns[i], group.n(), context);
  }
}

Forward::Forward(const Model& model, const Context& context) : model_(model), context_(context) {}

Status Forward::Embed(const Batch& batch, std::span<float> hidden) {
  const auto width = static_cast<size_t>(model_.spec.hidden_size);
  const int64_t row_bytes = model_.spec.hidden_size * DTypeBytes(model_.embedding.dtype);
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    const int32_t token = batch.tokens[row];
    if (token < 0 || token >= model_.spec.vocab_size) {
      return InvalidArgument(
          fmt::format("token {} is outside the vocabulary of {}", token, model_.spec.vocab_size));
    }
    if (model_.embedding_table != nullptr) {
      model_.embedding_table->Read(token, hidden.data() + row * width);
      continue;
    }
    const TensorView source{.dtype = model_.embedding.dtype,
                            .shape = {model_.spec.hidden_size},
                            .bytes = model_.embedding.bytes + token * row_bytes};
    OCTAVO_RETURN_IF_ERROR(ToFloat(source, hidden.subspan(row * width, width)));
  }
  Multiply(model_.spec.embedding_multiplier, hidden.first(batch.tokens.size() * width));
  return OkStatus();
}

void Forward::Block(int64_t block_index, const Batch& batch, std::span<SequenceState* const> states,
                    std::span<float> hidden, Until until) {
  const ModelSpec& spec = model_.spec;
  const octavo::Block& block = model_.blocks[static_cast<size_t>(block_index)];
  OCTAVO_CHECK(block.loaded) << block.name;
  const int64_t m = batch.rows();
  const int64_t width = spec.hidden_size;
  const std::span<float> normed = Scratch(&normed_, m, width);
  const std::span<float> projected = Scratch(&projected_, m, width);
  // What attention and MLP read, and how what they give is added.
  const auto input = [&](const Norm& norm) -> Rows {
    if (!norm.exists()) return {hidden.data(), m, width, width};
    ApplyNorm(spec, norm.weight, hidden.data(), width, m, normed.data(), width, context_);
    return {normed.data(), m, width, width};
  };
  const auto add = [&](const Norm& norm) {
    if (norm.exists()) {
      ApplyNorm(spec, norm.weight, projected.data(), width, m, projected.data(), width, context_);
    }
    Multiply(spec.residual_multiplier, projected);
    AddRows(projected.data(), width, m, width, hidden.data(), width, context_.pool);
  };

  RunGroup(block.qkv, input(block.attention_norm), Scratch(&qkv_, m, block.qkv.n()));
  PrepareHeads(block, block_index, batch);
  if (until == Until::kAttentionTap) return;
  Attention(block, block_index, batch, states);
  RunGroup(block.attention_output, {attended_.data(), m, spec.q_size(), spec.q_size()}, projected);
  add(block.post_attention_norm);

  const std::span<float> gate_up = Scratch(&gate_up_, m, block.gate_up.n());
  const std::span<float> activated = Scratch(&activated_, m, spec.intermediate_size);
  RunGroup(block.gate_up, input(block.mlp_norm), gate_up);
  ActivateAndMultiply(spec.activation, gate_up.data(), block.gate_up.n(), m, spec.intermediate_size,
                      activated.data(), spec.intermediate_size, context_.isa, context_.pool);
  const Rows down_input{activated.data(), m, spec.intermediate_size, spec.intermediate_size};
  if (until == Until::kLastTap) {
    if (tap_) tap_(block.down, down_input);
    return;
  }
  RunGroup(block.down, down_input, projected);
  add(block.post_mlp_norm);
}

void Forward::Head(const Batch& batch, std::span<const float> hidden, std::span<float> logits) {
  const int64_t width = model_.spec.hidden_size;
  const int64_t wanted = batch.wanted_rows();
  OCTAVO_CHECK(static_cast<int64_t>(logits.size()) == wanted * model_.spec.vocab_size);
  const std::span<float> normed = Scratch(&normed_, wanted, width);
  int64_t out = 0;
  for (int64_t row = 0; row < batch.rows(); ++row) {
    if (batch.want_logits[static_cast<size_t>(row)] == 0) continue;
    std::copy_n(hidden.data() + row * width, width, normed.data() + out++ * width);
  }
  ApplyNorm(model_.spec, model_.final_norm_weight, normed.data(), width, wanted, normed.data(),
            width, context_);
  RunGroup(model_.head, {normed.data(), wanted, width, width}, logits);
  Multiply(model_.spec.logits_multiplier, logits);
  if (const float cap = model_.spec.logits_soft_cap; cap != 0) {
    for (float& logit : logits) logit = cap * std::tanh(logit / cap);
  }
}

void Forward::RunGroup(const LinearGroup& group, const Rows& x, std::span<float> y) {
  if (tap_) tap_(group, x);
  MultiplyGroup(group, x, &quantized_, y.data(), context_);
}

void Forward::Attention(const octavo::Block& block, int64_t block_index, const Batch& batch,
                        std::span<SequenceState* const> states) {
  const ModelSpec& spec = model_.spec;
  const int64_t m = batch.rows();
  const int64_t stride = block.qkv.n();
  float* queries = qkv_.data();
  const float* keys = queries + spec.q_size();
  const float* values = keys + spec.kv_size();

  std::vector<AttentionSequence> sequences;
  for (int64_t first = 0; first < m;) {
    const int64_t end = RunEnd(batch, first);
    sequences.push_back({.first_row = first,
                         .rows = end - first,
                         .first_position = batch.position[static_cast<size_t>(first)],
                         .kv_begin = 0,
                         .kv = {}});
    first = end;
  }
  if (!block.query_scales.empty()) RoundQueries(block, m, queries, stride);
  context_.pool.ParallelFor(std::ssize(sequences), [&](int64_t i) {
    AttentionSequence& sequence = sequences[static_cast<size_t>(i)];
    const int64_t first = sequence.first_row;
    const auto state = static_cast<size_t>(batch.sequence[static_cast<size_t>(first)]);
    auto* kv = static_cast<KvState*>(states[state]->layers[static_cast<size_t>(block_index)].get());
    OCTAVO_CHECK(kv->length() == sequence.first_position) << kv->length();
    kv->Append(keys + first * stride, values + first * stride, sequence.rows, stride);
    sequence.kv_begin = kv->begin();
    sequence.kv = kv->view();
  });
  const AttentionShape shape{.heads = spec.num_heads,
                             .kv_heads = spec.num_kv_heads,
                             .head_dim = spec.head_dim,
                             .scale = spec.attention_scale != 0
                                          ? spec.attention_scale
                                          : 1.0F / std::sqrt(static_cast<float>(spec.head_dim)),
                             .window = spec.window(block_index),
                             .soft_cap = spec.attention_soft_cap};
  Attend(shape, sequences, queries, stride, Scratch(&attended_, m, spec.q_size()).data(),
         spec.q_size(), context_.isa, context_.pool);
}

void Forward::PrepareHeads(const octavo::Block& block, int64_t block_index, const Batch& batch) {
  const ModelSpec& spec = model_.spec;
  const int64_t m = batch.rows();
  const int64_t stride = block.qkv.n();
  float* queries = qkv_.data();
  float* keys = queries + spec.q_size();
  const float* values = keys + spec.kv_size();
  if (!spec.qk_norm_after_rope) NormQueriesAndKeys(block, m, queries, keys, stride);
  if (spec.is_rotated(block_index)) {
    const RopeSpec& rope = spec.rope_of(block_index);
    RopeTable& table = &rope == &spec.rope ? rope_ : window_rope_;
    PrepareRope(rope, batch, &table);
    const auto rotate = [&](float* x, int64_t heads) {
      ApplyRope(x, stride, m, heads, spec.head_dim, spec.rotary_dim, spec.rope_pairs,
                table.cos.data(), table.sin.data(), context_.isa, context_.pool);
    };
    rotate(queries, spec.num_heads);
    rotate(keys, spec.num_kv_heads);
  }
  if (spec.qk_norm_after_rope) NormQueriesAndKeys(block, m, queries, keys, stride);
  if (spec.query_growth != 0) GrowQueries(batch, queries, stride);
  for (const auto& transform : block.query_transforms)
    transform->ApplyInPlace(queries, stride, m, spec.q_size(), context_);
  for (const auto& transform : block.key_transforms)
    transform->ApplyInPlace(keys, stride, m, spec.kv_size(), context_);
  if (attention_tap_)
    attention_tap_({.queries = {queries, m, spec.q_size(), stride},
                    .keys = {keys, m, spec.kv_size(), stride},
                    .values = {values, m, spec.kv_size(), stride}});
}

void Forward::NormQueriesAndKeys(const octavo::Block& block, int64_t rows, float* queries,
                                 float* keys, int64_t stride) {
  const ModelSpec& spec = model_.spec;
  switch (spec.qk_norm) {
    case QkNorm::kNone:
      return;
    case QkNorm::kHeads:
      NormHeads(block.q_norm.weight, queries, stride, rows, spec.num_heads);
      NormHeads(block.k_norm.weight, keys, stride, rows, spec.num_kv_heads);
      return;
    case QkNorm::kRows:
      ApplyNorm(spec, block.q_norm.weight, queries, stride, rows, queries, stride, context_);
      ApplyNorm(spec, block.k_norm.weight, keys, stride, rows, keys, stride, context_);
      return;
  }
}

void Forward::GrowQueries(const Batch& batch, float* queries, int64_t stride) {
  const ModelSpec& spec = model_.spec;
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const int64_t turns = batch.position[static_cast<size_t>(row)] / spec.query_growth_positions;
    const double factor =
        1 + static_cast<double>(spec.query_growth) * std::log1p(static_cast<double>(turns));
    Multiply(static_cast<float>(factor),
             {queries + row * stride, static_cast<size_t>(spec.q_size())});
  }
}

void Forward::RoundQueries(const octavo::Block& block, int64_t rows, float* queries,
                           int64_t stride) {
  const bool is_float =
      block.query_quantization->input_activations->type == QuantizationType::kFloat;
  const int64_t width = model_.spec.q_size() / std::ssize(block.query_scales);
  for (const float scale : block.query_scales) {
    RoundRowsInPlace(queries, stride, rows, width,
                     {.to = is_float ? RoundTo::kE4M3 : RoundTo::kInt,
                      .bits = 8,
                      .scale_from = RowScale::kFixed,
                      .scale = scale},
                     context_.isa, context_.pool);
    queries += width;
  }
}

void Forward::NormHeads(const Tensor& weight, float* x, int64_t stride, int64_t m, int64_t heads) {
  const int64_t dim = model_.spec.head_dim;
  // As few calls as possible: a head of all rows each, or all heads of a row.
  const bool by_head = heads <= m;
  for (int64_t i = 0; i < (by_head ? heads : m); ++i) {
    float* first = x + i * (by_head ? dim : stride);
    const int64_t distance = by_head ? stride : dim;
    ApplyNorm(model_.spec, weight, first, distance, by_head ? m : heads, first, distance, context_);
  }
}

void Forward::PrepareRope(const RopeSpec& rope, const Batch& batch, RopeTable* table) {
  const std::vector<int64_t> lengths =
      rope.depends_on_length() ? LengthsOfRows(batch) : std::vector<int64_t>();
  // The same for every block of a pass.
  if (table->positions == batch.position && table->lengths == lengths) return;
  table->positions = batch.position;
  table->lengths = lengths;
  const int64_t rotary_dim = model_.spec.rotary_dim;
  const auto half = static_cast<size_t>(rotary_dim / 2);
  if (table->frequencies.empty()) table->frequencies = RopeFrequencies(rope, rotary_dim, 0);
  table->cos.resize(batch.position.size() * half);
  table->sin.resize(batch.position.size() * half);
  for (size_t row = 0; row < batch.position.size(); ++row) {
    if (!lengths.empty() && (row == 0 || lengths[row] != lengths[row - 1]))
      table->frequencies = RopeFrequencies(rope, rotary_dim, lengths[row]);
    for (size_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(batch.position[row]) * static_cast<double>(table->frequencies[i]);
      table->cos[row * half + i] = static_cast<float>(std::cos(angle) * rope.attention_factor);
      table->sin[row * half + i] = static_cast<float>(std::sin(angle) * rope.attention_factor);
    }
  }
}

}  // namespace octavo
