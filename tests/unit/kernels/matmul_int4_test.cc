#include "kernels/matmul_int4/matmul_int4.h"

#include <algorithm>

#include "kernel_testing.h"
#include "kernels/matmul_int4/kernels.h"

namespace octavo {
namespace {

size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

struct Form {
  int64_t m, n, k;
  int64_t group = 0;        // of weights; 0: k
  int64_t input_group = 0;  // of activations; 0: one scale for a row
  bool zero_points = false;
  bool bias = false;
};

std::ostream& operator<<(std::ostream& out, const Form& form) {
  return out << "m n k " << form.m << " " << form.n << " " << form.k << " group " << form.group
             << " input group " << form.input_group << " zero points " << form.zero_points;
}

// One problem and its exact answer, computed the plain way from what MultiplyInt4 promises.
struct Problem {
  Form form;
  int64_t group, row_bytes, units;
  std::vector<uint8_t> codes;
  std::vector<float> scales, row_scales, bias, expected;
  std::vector<int8_t> q, zero_points;

  Problem(Rng& rng, const Form& drawn) : form(drawn) {
    group = form.group == 0 ? form.k : form.group;
    row_bytes = (form.k + 1) / 2 + 1;
    units = (form.k + group - 1) / group;
    for (int64_t i = 0; i < form.n * row_bytes; ++i)
      codes.push_back(static_cast<uint8_t>(rng.Below(256)));
    scales = RandomFloats(rng, form.n * units);
    q = RandomInt8(rng, form.m * form.k);
    row_scales = RandomFloats(rng, form.m * input_groups());
    if (form.bias) bias = RandomFloats(rng, form.n);
    if (form.zero_points) {
      for (size_t i = 0; i < scales.size(); ++i)
        zero_points.push_back(static_cast<int8_t>(static_cast<int>(rng.Below(16)) - 8));
    }
    Solve();
  }

  int64_t input_groups() const {
    return form.input_group == 0 ? 1 : (form.k + form.input_group - 1) / form.input_group;
  }

  int32_t WeightAt(int64_t j, int64_t l) const {
    const int32_t code = codes[At(j * row_bytes + l / 2)] >> (l % 2 * 4) & 15;
    return code - 8 - (zero_points.empty() ? 0 : zero_points[At(j * units + l / group)]);
  }

  void Solve() {
    const Int4Parts parts{.k = form.k, .group = form.input_group == 0 ? group : form.input_group};
    expected.clear();
    for (int64_t i = 0; i < form.m; ++i) {
      for (int64_t j = 0; j < form.n; ++j) {
        float y = 0;
        for (int64_t p = 0; p < parts.count(); ++p) {
          const Int4Part part = parts.At(p);
          int32_t sum = 0;
          for (int64_t l = part.begin; l < part.end; ++l)
            sum += q[At(i * form.k + l)] * WeightAt(j, l);
          float scale = scales[At(j * units + part.begin / group)];
          if (form.input_group != 0) scale *= row_scales[At(i * input_groups() + part.group)];
          const float scaled = static_cast<float>(sum) * scale;
          y = p == 0 ? scaled : y + scaled;
        }
        if (form.input_group == 0) y *= row_scales[At(i)];
        if (!bias.empty()) y += bias[At(j)];
        expected.push_back(y);
      }
    }
  }

  // Rows [first, first + count) of w.
  CodedMatrix Matrix(int64_t first, int64_t count) const {
    return {.format = CodeFormat::kNibble,
            .n = count,
            .k = form.k,
            .codes = codes.data() + first * row_bytes,
            .row_bytes = row_bytes,
            .scales = scales.data() + first * units,
            .scale_columns = units,
            .unit_columns = group,
            .zero_points = zero_points.empty() ? nullptr : zero_points.data() + first * units};
  }

  // y with two more floats a row, which must stay as they were. w is packed from two parts.
  std::vector<float> Run(Isa isa, int threads) const {
    ThreadPool pool(threads);
    std::vector<CodedMatrix> matrices = {Matrix(0, form.n / 2),
                                         Matrix(form.n / 2, form.n - form.n / 2)};
    if (form.n < 2) matrices = {Matrix(0, form.n)};
    const Int4Weights packed = Int4Weights::Pack(matrices, form.input_group, isa, pool);
    EXPECT_LE(packed.kernel().isa, isa);
    const int64_t ldy = form.n + 2;
    std::vector<float> padded(At(form.m * ldy), kUnset);
    MultiplyInt4(packed,
                 {.codes = q.data(),
                  .scales = row_scales.data(),
                  .scales_of_groups = form.input_group != 0,
                  .m = form.m},
                 bias, padded.data(), ldy, pool);
    std::vector<float> y;
    for (int64_t i = 0; i < form.m; ++i) {
      const auto row = padded.begin() + i * ldy;
      y.insert(y.end(), row, row + form.n);
      EXPECT_EQ(row[form.n], kUnset);
      EXPECT_EQ(row[form.n + 1], kUnset);
    }
    return y;
  }
};

const Form kForms[] = {
    {.m = 1, .n = 1, .k = 1},
    {.m = 1, .n = 64, .k = 8},
    {.m = 2, .n = 65, .k = 7, .bias = true},
    {.m = 3, .n = 63, .k = 130, .group = 32},
    {.m = 5, .n = 17, .k = 300, .group = 128, .bias = true},
    {.m = 6, .n = 70, .k = 256, .group = 16, .zero_points = true},
    {.m = 7, .n = 130, .k = 264, .group = 24, .input_group = 24},
    {.m = 13, .n = 66, .k = 513, .zero_points = true, .bias = true},
    {.m = 97, .n = 80, .k = 129, .group = 128},
    {.m = 9, .n = 33, .k = 1030, .group = 512, .zero_points = true},
    {.m = 40, .n = 64, .k = 260, .input_group = 128},
    {.m = 4, .n = 20, .k = 384, .group = 128, .input_group = 32, .zero_points = true},
    {.m = 200, .n = 70, .k = 64, .group = 64},
};

TEST(MatmulInt4, ListObeysCaps) {
  ExpectListObeysCaps(Int4MatmulKernels());
}

TEST(MatmulInt4, EveryKernelIsExact) {
  constexpr uint64_t kSeed = 60;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (const Form& form : kForms) {
    SCOPED_TRACE(testing::Message() << form);
    const Problem problem(rng, form);
    ForEachKernel(Int4MatmulKernels(), [&](const Int4MatmulKernel& kernel) {
      EXPECT_EQ(kernel.exactness, Exactness::kExact);
      ExpectSameBits(problem.Run(kernel.isa, 1), problem.expected);
    });
  }
}

TEST(MatmulInt4, ExtremesDoNotOverflow) {
  Rng rng(61);
  for (const uint8_t code : {uint8_t{0}, uint8_t{255}}) {
    for (const int8_t value : {int8_t{-128}, int8_t{127}}) {
      Problem problem(rng, {.m = 2, .n = 3, .k = 2048});
      std::fill(problem.codes.begin(), problem.codes.end(), code);
      std::fill(problem.q.begin(), problem.q.end(), value);
      problem.Solve();
      ForEachKernel(Int4MatmulKernels(), [&](const Int4MatmulKernel& kernel) {
        ExpectSameBits(problem.Run(kernel.isa, 1), problem.expected);
      });
    }
  }
}

// Zeros keep the sign that their scale gives them.
TEST(MatmulInt4, RowsOfZeros) {
  Rng rng(65);
  Problem problem(rng, {.m = 2, .n = 70, .k = 96, .group = 96});
  std::fill(problem.q.begin(), problem.q.end(), int8_t{0});
  problem.Solve();
  ForEachKernel(Int4MatmulKernels(), [&](const Int4MatmulKernel& kernel) {
    ExpectSameBits(problem.Run(kernel.isa, 1), problem.expected);
  });
}

TEST(MatmulInt4, NanScaleGivesNan) {
  Rng rng(62);
  Problem problem(rng, {.m = 2, .n = 5, .k = 64, .group = 32});
  problem.row_scales[1] = std::nanf("");
  problem.Solve();
  ForEachKernel(Int4MatmulKernels(), [&](const Int4MatmulKernel& kernel) {
    const std::vector<float> y = problem.Run(kernel.isa, 1);
    ExpectSameBits(y, problem.expected);
    EXPECT_TRUE(std::isnan(y[5]));
    EXPECT_FALSE(std::isnan(y[4]));
  });
}

TEST(MatmulInt4, ThreadsDoNotChangeResults) {
  Rng rng(63);
  const Problem problem(rng, {.m = 210, .n = 330, .k = 136, .group = 64});
  ForEachKernel(Int4MatmulKernels(), [&](const Int4MatmulKernel& kernel) {
    for (const int threads : {2, 3})
      ExpectSameBits(problem.Run(kernel.isa, threads), problem.expected);
  });
}

TEST(MatmulInt4, TakesGroupsOfWholeSteps) {
  CodedMatrix matrix{.format = CodeFormat::kNibble, .n = 4, .k = 96, .unit_columns = 48};
  EXPECT_TRUE(Int4Weights::Takes(matrix, 0));
  EXPECT_TRUE(Int4Weights::Takes(matrix, 24));
  EXPECT_FALSE(Int4Weights::Takes(matrix, 32));
  EXPECT_FALSE(Int4Weights::Takes(matrix, 12));
  matrix.unit_columns = 12;
  EXPECT_FALSE(Int4Weights::Takes(matrix, 0));
  matrix.unit_columns = 96;
  EXPECT_TRUE(Int4Weights::Takes(matrix, 32));
  matrix.format = CodeFormat::kInt8;
  EXPECT_FALSE(Int4Weights::Takes(matrix, 0));
}

TEST(MatmulInt4, OneCopyInMemory) {
  Rng rng(64);
  const Problem problem(rng, {.m = 1, .n = 128, .k = 256, .group = 128});
  ThreadPool pool(1);
  const CodedMatrix matrix = problem.Matrix(0, 128);
  for (const Isa isa : IsasUpTo(DetectIsa())) {
    EXPECT_EQ(Int4Weights::Pack({&matrix, 1}, 0, isa, pool).owned_bytes(),
              128 * 256 / 2 + 128 * 2 * 4);
  }
}

}  // namespace
}  // namespace octavo
