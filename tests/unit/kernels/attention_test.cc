#include "kernels/attention/attention.h"

#include <algorithm>
#include <bit>

#include "kernel_testing.h"
#include "kernels/attention/kernels.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {
namespace {

size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

struct SequenceSizes {
  int64_t rows;
  int64_t first_position;
};

// Keys and values of one sequence as stored, and as floats.
struct Memory {
  Tensor keys, values;
  std::vector<float> float_keys, float_values;
  std::vector<float> key_scales, value_scales;  // of codes
};

// Every code but NaN.
Tensor RandomCodes(Rng& rng, DType dtype, int64_t count) {
  Tensor codes(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    uint64_t code = rng.Below(256);
    if (dtype == DType::kF8E4M3 && std::isnan(FloatFromE4M3(static_cast<uint8_t>(code)))) code = 0;
    codes.bytes()[i] = static_cast<std::byte>(code);
  }
  return codes;
}

float CodeValue(DType dtype, std::byte code) {
  return dtype == DType::kI8 ? static_cast<float>(static_cast<int8_t>(code))
                             : FloatFromE4M3(static_cast<uint8_t>(code));
}

// Query rows of several sequences, with room between rows, heads and tokens that must not be read.
struct Problem {
  AttentionShape shape;
  DType dtype;
  std::vector<SequenceSizes> sizes;
  std::vector<Memory> memory;
  std::vector<AttentionSequence> sequences;
  std::vector<float> q;
  int64_t m = 0;

  int64_t width() const { return shape.heads * shape.head_dim; }
  int64_t ldq() const { return width() + 3; }
  int64_t head_stride() const { return shape.head_dim + 1; }
  int64_t token_stride() const { return shape.kv_heads * head_stride() + 2; }

  Problem(Rng& rng, AttentionShape shape_, DType dtype_, std::vector<SequenceSizes> sizes_,
          double spread = 1.0)
      : shape(shape_), dtype(dtype_), sizes(std::move(sizes_)) {
    shape.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
    for (const SequenceSizes& size : sizes) {
      const int64_t tokens = size.first_position + size.rows;
      const int64_t count = tokens * token_stride();
      Memory one;
      if (dtype == DType::kF8E4M3 || dtype == DType::kI8) {
        FillCodes(rng, count, &one);
      } else {
        FillFloats(rng, count, spread, &one);
      }
      sequences.push_back({.first_row = m,
                           .rows = size.rows,
                           .first_position = size.first_position,
                           .kv = {.dtype = dtype,
                                  .keys = one.keys.view().bytes,
                                  .values = one.values.view().bytes,
                                  .token_stride = token_stride(),
                                  .head_stride = head_stride(),
                                  .key_scales = DataOrNull(one.key_scales),
                                  .value_scales = DataOrNull(one.value_scales)}});
      memory.push_back(std::move(one));
      m += size.rows;
    }
    q = RandomFloats(rng, m * ldq());
  }

  static const float* DataOrNull(const std::vector<float>& scales) {
    return scales.empty() ? nullptr : scales.data();
  }

  void FillFloats(Rng& rng, int64_t count, double spread, Memory* one) const {
    one->keys = FromFloat(RandomFloats(rng, count, spread), dtype, {count}).value();
    one->values = FromFloat(RandomFloats(rng, count), dtype, {count}).value();
    one->float_keys.resize(At(count));
    one->float_values.resize(At(count));
    EXPECT_TRUE(ToFloat(one->keys, one->float_keys).ok());
    EXPECT_TRUE(ToFloat(one->values, one->float_values).ok());
  }

  // Codes of about the size of FillFloats' values, with scales of each head's own.
  void FillCodes(Rng& rng, int64_t count, Memory* one) const {
    one->keys = RandomCodes(rng, dtype, count);
    one->values = RandomCodes(rng, dtype, count);
    for (int64_t head = 0; head < shape.kv_heads; ++head) {
      one->key_scales.push_back(0.01F + 0.005F * static_cast<float>(head));
      one->value_scales.push_back(0.02F + 0.003F * static_cast<float>(head));
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t head = std::min(i % token_stride() / head_stride(), shape.kv_heads - 1);
      one->float_keys.push_back(CodeValue(dtype, one->keys.bytes()[i]) * one->key_scales[At(head)]);
      one->float_values.push_back(CodeValue(dtype, one->values.bytes()[i]) *
                                  one->value_scales[At(head)]);
    }
  }

  std::vector<float> Run(Isa isa, int threads) const {
    ThreadPool pool(threads);
    std::vector<float> out(At(m * ldq()), kUnset);
    Attend(shape, sequences, q.data(), ldq(), out.data(), ldq(), isa, pool);
    return out;
  }

  void ExpectWithinBounds(const std::vector<float>& out) const {
    for (size_t s = 0; s < sequences.size(); ++s) {
      for (int64_t row = 0; row < sequences[s].rows; ++row) {
        for (int64_t head = 0; head < shape.heads; ++head) CheckVector(out, s, row, head);
        const int64_t end = (sequences[s].first_row + row) * ldq() + width();
        ASSERT_EQ(out[At(end)], kUnset);
      }
    }
  }

  void CheckVector(const std::vector<float>& out, size_t s, int64_t row, int64_t head) const {
    const AttentionSequence& sequence = sequences[s];
    const int64_t position = sequence.first_position + row;
    const int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
    const int64_t keys = position + 1 - first;
    const int64_t at_q = (sequence.first_row + row) * ldq() + head * shape.head_dim;
    const int64_t offset = head / (shape.heads / shape.kv_heads) * head_stride();
    std::vector<double> scores;
    double largest = -1e300;
    double largest_norm = 0;
    for (int64_t t = first; t <= position; ++t) {
      double score = 0;
      double norm = 0;
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        const double product = Wide(q[At(at_q + d)]) *
                               Wide(memory[s].float_keys[At(t * token_stride() + offset + d)]) *
                               Wide(shape.scale);
        score += product;
        norm += std::abs(product);
      }
      scores.push_back(score);
      largest = std::max(largest, score);
      largest_norm = std::max(largest_norm, norm);
    }
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    // A score errs by (D + 2) eps norm and moves its weight by that factor; then sums of `keys`.
    const double relative =
        0x1p-24 * (2 * (static_cast<double>(shape.head_dim) + 2) * largest_norm +
                   2 * static_cast<double>(keys) + 20);
    for (int64_t d = 0; d < shape.head_dim; ++d) {
      double expected = 0;
      double norm = 0;
      for (int64_t t = first; t <= position; ++t) {
        const double part = scores[At(t - first)] / sum *
                            Wide(memory[s].float_values[At(t * token_stride() + offset + d)]);
        expected += part;
        norm += std::abs(part);
      }
      ASSERT_NEAR(Wide(out[At(at_q + d)]), expected, relative * norm + 1e-30)
          << "sequence " << s << " row " << row << " head " << head << " d " << d;
    }
  }
};

TEST(Attention, ListObeysCaps) {
  ExpectListObeysCaps(AttentionKernels());
}

TEST(Attention, EveryKernelIsWithinBounds) {
  constexpr uint64_t kSeed = 60;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  const AttentionShape shapes[] = {
      {.heads = 3, .kv_heads = 1, .head_dim = 64},  {.heads = 4, .kv_heads = 2, .head_dim = 8},
      {.heads = 2, .kv_heads = 2, .head_dim = 16},  {.heads = 5, .kv_heads = 1, .head_dim = 20},
      {.heads = 2, .kv_heads = 1, .head_dim = 128}, {.heads = 1, .kv_heads = 1, .head_dim = 1}};
  for (const AttentionShape& shape : shapes) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3, DType::kI8}) {
      SCOPED_TRACE(testing::Message() << shape.heads << "/" << shape.kv_heads << " heads of "
                                      << shape.head_dim << " " << DTypeName(dtype));
      // A prompt, generation, a continued prompt, several rows at the start of a block.
      const Problem problem(rng, shape, dtype, {{70, 0}, {1, 130}, {5, 61}, {3, 0}, {1, 0}});
      ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
        problem.ExpectWithinBounds(problem.Run(kernel.isa, 1));
      });
    }
  }
}

TEST(Attention, AWindowHidesWhatLiesBefore) {
  Rng rng(66);
  // Within a block of keys, across blocks, across chunks, and larger than all there is.
  for (const int64_t window : {1, 8, 64, 100, 700, 5000}) {
    SCOPED_TRACE(window);
    const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 16, .window = window};
    const Problem problem(rng, shape, DType::kBF16, {{150, 0}, {1, 130}, {5, 61}, {30, 1400}});
    ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
      problem.ExpectWithinBounds(problem.Run(kernel.isa, 1));
    });
  }
}

TEST(Attention, KeysBeforeTheWindowNeedNotBeThere) {
  Rng rng(67);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 16, .window = 40};
  Problem problem(rng, shape, DType::kF32, {{30, 100}});
  AttentionSequence& sequence = problem.sequences[0];
  sequence.kv_begin = 100 - 40 + 1;
  const int64_t offset = sequence.kv_begin * problem.token_stride();
  sequence.kv.keys = static_cast<const float*>(sequence.kv.keys) + offset;
  sequence.kv.values = static_cast<const float*>(sequence.kv.values) + offset;
  ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
    problem.ExpectWithinBounds(problem.Run(kernel.isa, 1));
  });
}

TEST(Attention, LongGenerationIsCutInChunks) {
  Rng rng(61);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 24};
  const Problem problem(rng, shape, DType::kBF16, {{1, 1500}, {4, 1022}, {1, 511}, {1, 512}});
  ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
    problem.ExpectWithinBounds(problem.Run(kernel.isa, 1));
  });
}

TEST(Attention, CodesBehindAWindowAndInChunks) {
  Rng rng(68);
  for (const DType dtype : {DType::kF8E4M3, DType::kI8}) {
    for (const int64_t window : {0, 100}) {
      const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 24, .window = window};
      const Problem problem(rng, shape, dtype, {{1, 1200}, {40, 200}, {3, 511}});
      ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
        problem.ExpectWithinBounds(problem.Run(kernel.isa, 2));
      });
    }
  }
}

// Each code as the only value there is: the result is its value.
TEST(Attention, EveryCodeIsReadExactly) {
  const float scale = 0.5F;
  for (const DType dtype : {DType::kF8E4M3, DType::kI8}) {
    for (int code = 0; code < 256; ++code) {
      const std::vector<uint8_t> codes(16, static_cast<uint8_t>(code));
      const std::vector<uint8_t> zeros(16, 0);
      const std::vector<float> q(16, 1.0F);
      const AttentionSequence sequence{.rows = 1,
                                       .kv = {.dtype = dtype,
                                              .keys = zeros.data(),
                                              .values = codes.data(),
                                              .token_stride = 16,
                                              .head_stride = 16,
                                              .key_scales = &scale,
                                              .value_scales = &scale}};
      ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
        ThreadPool pool(1);
        std::vector<float> out(16);
        Attend({.heads = 1, .kv_heads = 1, .head_dim = 16, .scale = 1}, {&sequence, 1}, q.data(),
               16, out.data(), 16, kernel.isa, pool);
        const float expected = CodeValue(dtype, static_cast<std::byte>(code)) * scale;
        // 0 + -0 is 0.
        for (const float value : out) {
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(value)) << code;
          } else {
            ASSERT_EQ(value, expected) << DTypeName(dtype) << " code " << code;
          }
        }
      });
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Rng rng(62);
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 16};
  const Problem problem(rng, shape, DType::kF32, {{90, 0}, {1, 600}}, 200.0);
  ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
    problem.ExpectWithinBounds(problem.Run(kernel.isa, 1));
  });
}

TEST(Attention, ThreadsDoNotChangeResults) {
  Rng rng(63);
  const AttentionShape shape{.heads = 6, .kv_heads = 2, .head_dim = 32};
  const Problem problem(rng, shape, DType::kBF16, {{100, 0}, {1, 1100}, {2, 40}});
  ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
    const std::vector<float> one = problem.Run(kernel.isa, 1);
    for (const int threads : {2, 3}) ExpectSameBits(problem.Run(kernel.isa, threads), one);
  });
}

// What a row sees does not depend on the call it comes in, up to rounding.
TEST(Attention, CutPromptEqualsWholePrompt) {
  Rng rng(64);
  const AttentionShape shape{.heads = 3, .kv_heads = 1, .head_dim = 64};
  const Problem whole(rng, shape, DType::kF32, {{120, 0}});
  for (const Isa isa : IsasUpTo(DetectIsa())) {
    const std::vector<float> expected = whole.Run(isa, 2);
    std::vector<float> out(expected.size(), kUnset);
    ThreadPool pool(2);
    for (int64_t row = 0; row < 120; row += 30) {
      AttentionSequence part = whole.sequences[0];
      part.rows = 30;
      part.first_row = row;
      part.first_position = row;
      Attend(whole.shape, {&part, 1}, whole.q.data(), whole.ldq(), out.data(), whole.ldq(), isa,
             pool);
    }
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-5F);
  }
}

TEST(Attention, NanReachesTheResult) {
  Rng rng(65);
  Problem problem(rng, {.heads = 1, .kv_heads = 1, .head_dim = 16}, DType::kF32, {{1, 80}});
  problem.memory[0].keys.mutable_data<float>()[At(70 * problem.token_stride())] = std::nanf("");
  ForEachKernel(AttentionKernels(), [&](const AttentionKernel& kernel) {
    EXPECT_TRUE(std::isnan(problem.Run(kernel.isa, 1)[0]));
  });
}

// Two keys and values of one number each.
TEST(Attention, ScoresAreCapped) {
  const std::vector<float> keys = {2, -3};
  const std::vector<float> values = {10, 20};
  const float query = 4;
  const AttentionShape shape{
      .heads = 1, .kv_heads = 1, .head_dim = 1, .scale = 0.5F, .window = 0, .soft_cap = 3};
  const AttentionSequence sequence{.first_row = 0,
                                   .rows = 1,
                                   .first_position = 1,
                                   .kv_begin = 0,
                                   .kv = {.dtype = DType::kF32,
                                          .keys = keys.data(),
                                          .values = values.data(),
                                          .token_stride = 1,
                                          .head_stride = 1}};
  const double first = std::exp(3 * std::tanh(4.0 / 3));
  const double second = std::exp(3 * std::tanh(-6.0 / 3));
  ThreadPool pool(1);
  for (const Isa isa : {Isa::kRef, DetectIsa()}) {
    float out = 0;
    Attend(shape, {&sequence, 1}, &query, 1, &out, 1, isa, pool);
    EXPECT_NEAR(static_cast<double>(out), (10 * first + 20 * second) / (first + second), 1e-5);
  }
}

}  // namespace
}  // namespace octavo
