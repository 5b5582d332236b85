#include "kernels/attention/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "kernels/attention/kernels.h"

namespace octavo {

namespace {

struct Heads {
  const char* name;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
};
constexpr Heads kHeads[] = {{"smollm2-135m", 9, 3, 64}, {"llama-3.1-8b", 32, 8, 128}};

struct Lengths {
  int64_t rows;    // new tokens, at the end of ...
  int64_t tokens;  // ... the sequence
};
constexpr Lengths kLengths[] = {{512, 512}, {2048, 2048}, {1, 256}, {1, 2048}, {1, 16384}};

struct Sequence {
  Tensor keys;  // [tokens, kv_heads, head_dim] bf16
  Tensor values;
  Tensor q;  // [rows, heads, head_dim]
  Tensor out;
};

Contenders Prepare(const Heads& heads, const Lengths& lengths, const CaseOptions& options) {
  auto sequence = std::make_shared<Sequence>();
  const int64_t kv_width = heads.kv_heads * heads.head_dim;
  const int64_t width = heads.heads * heads.head_dim;
  sequence->keys = RandomTensor(DType::kBF16, {lengths.tokens, kv_width});
  sequence->values = RandomTensor(DType::kBF16, {lengths.tokens, kv_width});
  sequence->q = RandomTensor(DType::kF32, {lengths.rows, width});
  sequence->out = Tensor(DType::kF32, {lengths.rows, width});
  const AttentionShape shape{.heads = heads.heads,
                             .kv_heads = heads.kv_heads,
                             .head_dim = heads.head_dim,
                             .scale = 1.0F / std::sqrt(static_cast<float>(heads.head_dim))};
  const AttentionSequence call{.first_row = 0,
                               .rows = lengths.rows,
                               .first_position = lengths.tokens - lengths.rows,
                               .kv = {.dtype = DType::kBF16,
                                      .keys = sequence->keys.view().bytes,
                                      .values = sequence->values.view().bytes,
                                      .token_stride = kv_width,
                                      .head_stride = heads.head_dim}};
  return {.kernel =
              [sequence, shape, call, width, isa = options.isa, &pool = options.pool] {
                Attend(shape, {&call, 1}, sequence->q.data<float>().data(), width,
                       sequence->out.mutable_data<float>().data(), width, isa, pool);
              },
          .rival = {}};
}

}  // namespace

void AddAttention(const CaseOptions& options, std::vector<KernelCase>* cases) {
  for (const Heads& heads : kHeads) {
    for (const Lengths& lengths : kLengths) {
      const auto rows = static_cast<double>(lengths.rows);
      // Two products over the visible pairs of tokens.
      const double pairs = rows * static_cast<double>(2 * lengths.tokens - lengths.rows + 1) / 2;
      const int64_t width = heads.heads * heads.head_dim;
      const int64_t kv_bytes = 2 * 2 * lengths.tokens * heads.kv_heads * heads.head_dim;
      const double bytes = static_cast<double>(kv_bytes) + 8 * rows * static_cast<double>(width);
      cases->push_back({.kernel = "attention",
                        .shape = fmt::format("{} {}, {} of {} tokens", heads.name,
                                             lengths.rows > 1 ? "prefill" : "decode", lengths.rows,
                                             lengths.tokens),
                        .isa = BestKernel(AttentionKernels(), options.isa).isa,
                        .arithmetic = RoofKind::kF32,
                        .operations = 4 * pairs * static_cast<double>(width),
                        .bytes = bytes,
                        .footprint = static_cast<int64_t>(bytes),
                        .prepare = [=] { return Prepare(heads, lengths, options); }});
    }
  }
}

}  // namespace octavo
