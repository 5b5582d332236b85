#include "kernels/matmul_coded/matmul_coded.h"

#include <algorithm>

#include "kernel_testing.h"
#include "kernels/matmul_coded/kernels.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {
namespace {

size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

// What a problem is drawn for.
struct Form {
  CodeFormat format = CodeFormat::kNibble;
  ScaleFormat scales = ScaleFormat::kF32;
  int64_t unit_rows = 1;
  int64_t unit_columns = 128;  // 0: k
  bool zero_points = false;
  float multiplier = 1;
};

std::ostream& operator<<(std::ostream& out, const Form& form) {
  return out << "codes " << static_cast<int>(form.format) << " scales "
             << static_cast<int>(form.scales) << " units " << form.unit_rows << " x "
             << form.unit_columns << (form.zero_points ? " with zero points" : "");
}

// Bytes of a scale of about 0.01 to 1.
std::vector<uint8_t> RandomScale(Rng& rng, ScaleFormat format) {
  const auto value = static_cast<float>(0.01 + rng.Uniform());
  switch (format) {
    case ScaleFormat::kF32: {
      std::vector<uint8_t> bytes(4);
      std::copy_n(reinterpret_cast<const uint8_t*>(&value), 4, bytes.begin());
      return bytes;
    }
    case ScaleFormat::kBf16: {
      const uint16_t bits = Bf16FromFloat(value);
      return {static_cast<uint8_t>(bits & 0xFFU), static_cast<uint8_t>(bits >> 8)};
    }
    case ScaleFormat::kE4M3:
      return {static_cast<uint8_t>(rng.Below(0x7F))};  // subnormals and zero among them
    case ScaleFormat::kE8M0:
      return {static_cast<uint8_t>(118 + rng.Below(12))};
  }
  return {};
}

// A matrix of random codes, each of its rows `row_bytes` apart, and what it stands for.
struct Weights {
  CodedMatrix matrix;
  std::vector<uint8_t> codes, scales;
  std::vector<int8_t> zero_points;
  std::vector<float> values;       // [n, k]
  std::vector<double> magnitudes;  // [n, k]: |value| + |zero point|, times |scale|

  Weights(Rng& rng, const Form& form, int64_t n, int64_t k) {
    const bool nibbles = form.format == CodeFormat::kNibble;
    const int64_t unit_columns = form.unit_columns == 0 ? k : form.unit_columns;
    const int64_t columns = (k + unit_columns - 1) / unit_columns;
    const int64_t units = (n + form.unit_rows - 1) / form.unit_rows * columns;
    matrix = {.format = form.format,
              .n = n,
              .k = k,
              .row_bytes = (nibbles ? (k + 1) / 2 : k) + 3,
              .scale_format = form.scales,
              .scale_columns = columns,
              .unit_rows = form.unit_rows,
              .unit_columns = unit_columns,
              .multiplier = form.multiplier};
    for (size_t code = 0; code < 16; ++code)
      matrix.table[code] = form.zero_points ? static_cast<float>(code) - 8 : kE2M1Values[code];
    codes.resize(At(n * matrix.row_bytes));
    for (uint8_t& code : codes) {
      code = static_cast<uint8_t>(rng.Below(256));
      if (form.format == CodeFormat::kE4M3 && (code & 0x7F) == 0x7F) code ^= 1;
    }
    scales = {0};  // of any alignment
    for (int64_t unit = 0; unit < units; ++unit) {
      for (const uint8_t byte : RandomScale(rng, form.scales)) scales.push_back(byte);
      if (form.zero_points)
        zero_points.push_back(static_cast<int8_t>(static_cast<int>(rng.Below(16)) - 8));
    }
    matrix.codes = codes.data();
    matrix.scales = scales.data() + 1;
    matrix.zero_points = zero_points.empty() ? nullptr : zero_points.data();
    Resolve();
  }

  void Resolve() {
    values.clear();
    magnitudes.clear();
    for (int64_t j = 0; j < matrix.n; ++j) {
      for (int64_t l = 0; l < matrix.k; ++l) {
        const int64_t unit = j / matrix.unit_rows * matrix.scale_columns + l / matrix.unit_columns;
        const float zero_point = zero_points.empty() ? 0.0F : zero_points[At(unit)];
        const float value = CodeValue(j, l);
        const float scale = ScaleAt(matrix, unit);
        values.push_back((value - zero_point) * scale);
        magnitudes.push_back((std::fabs(Wide(value)) + std::fabs(Wide(zero_point))) *
                             std::fabs(Wide(scale)));
      }
    }
  }

  float CodeValue(int64_t j, int64_t l) const {
    const uint8_t* row = matrix.codes + j * matrix.row_bytes;
    if (matrix.format == CodeFormat::kNibble) return matrix.table[row[l / 2] >> (l % 2 * 4) & 15];
    if (matrix.format == CodeFormat::kE4M3) return FloatFromE4M3(row[l]);
    return static_cast<float>(static_cast<int8_t>(row[l]));
  }
};

struct Problem {
  int64_t m;
  Weights w;
  std::vector<float> x, bias;
  int64_t ldx;

  Problem(Rng& rng, const Form& form, int64_t rows, int64_t n, int64_t k, bool with_bias)
      : m(rows), w(rng, form, n, k), ldx(k + 1) {
    x = RandomFloats(rng, m * ldx);
    if (with_bias) bias = RandomFloats(rng, n);
  }

  // y with two more floats a row, which must stay as they were.
  std::vector<float> Run(Isa isa, int threads) const {
    ThreadPool pool(threads);
    const int64_t ldy = w.matrix.n + 2;
    std::vector<float> y(At(m * ldy), kUnset);
    MultiplyCoded(w.matrix, bias, x.data(), ldx, m, y.data(), ldy, isa, pool);
    return y;
  }

  void ExpectNear(const std::vector<float>& y) const {
    const int64_t n = w.matrix.n;
    const int64_t k = w.matrix.k;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias.empty() ? 0 : Wide(bias[At(j)]);
        double magnitude = std::fabs(sum);
        for (int64_t l = 0; l < k; ++l) {
          const double value = Wide(x[At(i * ldx + l)]);
          sum += value * Wide(w.values[At(j * k + l)]);
          magnitude += std::fabs(value) * w.magnitudes[At(j * k + l)];
        }
        const double bound = 0x1p-23 * static_cast<double>(k + 4) * magnitude;
        ASSERT_NEAR(Wide(y[At(i * (n + 2) + j)]), sum, bound) << "row " << i << " column " << j;
      }
      EXPECT_EQ(y[At(i * (n + 2) + n)], kUnset);
      EXPECT_EQ(y[At(i * (n + 2) + n + 1)], kUnset);
    }
  }
};

std::vector<Form> Forms() {
  std::vector<Form> forms;
  for (const int64_t columns : {0, 8, 16, 24, 32, 48, 64, 128, 256}) {
    forms.push_back({.unit_columns = columns});
    forms.push_back({.scales = ScaleFormat::kBf16, .unit_columns = columns, .zero_points = true});
    forms.push_back({.format = CodeFormat::kInt8, .unit_columns = columns});
    forms.push_back({.format = CodeFormat::kInt8, .unit_columns = columns, .zero_points = true});
    forms.push_back({.format = CodeFormat::kE4M3, .unit_columns = columns});
  }
  for (const CodeFormat format : {CodeFormat::kNibble, CodeFormat::kInt8, CodeFormat::kE4M3}) {
    forms.push_back({.format = format, .unit_rows = 128, .unit_columns = 128});
    forms.push_back({.format = format, .unit_rows = 1 << 20, .unit_columns = 0});  // one for all
    forms.push_back({.format = format, .scales = ScaleFormat::kE8M0, .unit_columns = 32});
    forms.push_back({.format = format,
                     .scales = ScaleFormat::kE4M3,
                     .unit_columns = 16,
                     .multiplier = 0.0123F});
  }
  return forms;
}

const CodeFormat kFormats[] = {CodeFormat::kNibble, CodeFormat::kInt8, CodeFormat::kE4M3};

TEST(MatmulCoded, ListObeysCaps) {
  for (const CodeFormat format : kFormats) {
    std::vector<CodedKernel> kernels;
    for (const CodedKernel& kernel : CodedKernels()) {
      if (kernel.format == format) kernels.push_back(kernel);
    }
    ExpectListObeysCaps(std::span<const CodedKernel>(kernels));
    for (const CodedKernel& kernel : kernels)
      EXPECT_EQ(BestCodedKernel(format, kernel.isa).name, kernel.name);
  }
}

TEST(MatmulCoded, EveryKernelMeetsTheBound) {
  constexpr uint64_t kSeed = 40;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  const int64_t shapes[][3] = {{1, 5, 128}, {2, 3, 131}, {3, 9, 1},   {4, 8, 300},  {5, 6, 257},
                               {7, 2, 96},  {8, 1, 513}, {9, 50, 40}, {40, 49, 130}};
  for (const Form& form : Forms()) {
    for (const auto& shape : shapes) {
      const Problem problem(rng, form, shape[0], shape[1], shape[2], shape[0] % 2 == 1);
      SCOPED_TRACE(testing::Message()
                   << "m n k " << shape[0] << " " << shape[1] << " " << shape[2] << " " << form);
      for (const Isa isa : IsasUpTo(DetectIsa())) {
        SCOPED_TRACE(static_cast<int>(isa));
        problem.ExpectNear(problem.Run(isa, 1));
      }
    }
  }
}

// Longer than what a kernel takes at a time.
TEST(MatmulCoded, LongRows) {
  Rng rng(41);
  for (const CodeFormat format : kFormats) {
    for (const int64_t columns : {0, 16, 48, 128, 8192}) {
      const bool zero_points = format != CodeFormat::kE4M3;
      const Form form{.format = format, .unit_columns = columns, .zero_points = zero_points};
      SCOPED_TRACE(testing::Message() << form);
      const Problem problem(rng, form, 2, 6, 9001, true);
      for (const Isa isa : IsasUpTo(DetectIsa())) problem.ExpectNear(problem.Run(isa, 1));
    }
  }
}

TEST(MatmulCoded, EveryKernelDecodesTheSameFloats) {
  Rng rng(42);
  for (const Form& form : Forms()) {
    if (form.unit_columns % 16 != 0) continue;
    SCOPED_TRACE(testing::Message() << form);
    const Weights w(rng, form, 3, 301);
    ForEachKernel(CodedKernels(), [&](const CodedKernel& kernel) {
      if (kernel.format != form.format) return;
      for (const int64_t begin : {0, 128, 256}) {
        for (const int64_t count : {1, 7, 16, 45, 128}) {
          if (begin + count > 301) continue;
          std::vector<float> out(At(count + 1), kUnset);
          kernel.decode(w.matrix, 2, begin, count, out.data());
          EXPECT_EQ(out.back(), kUnset);
          out.pop_back();
          const auto first = w.values.begin() + 2 * 301 + begin;
          ExpectSameBits(out, std::vector<float>(first, first + count));
        }
      }
    });
  }
}

// Kernels may take blocks without subnormals and zeros another way.
TEST(MatmulCoded, NormalE4M3CodesAndOneSubnormal) {
  constexpr uint64_t kSeed = 44;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (const int64_t columns : {0, 16, 48, 64, 128}) {
    for (const int64_t m : {1, 2, 4, 5}) {
      Problem problem(rng, {.format = CodeFormat::kE4M3, .unit_columns = columns}, m, 6, 1300,
                      false);
      Weights& w = problem.w;
      for (uint8_t& code : w.codes) {
        if ((code & 0x78) == 0) code |= static_cast<uint8_t>(0x08 + 8 * rng.Below(14));
      }
      w.Resolve();
      const auto expect = [&] {
        for (const Isa isa : IsasUpTo(DetectIsa())) problem.ExpectNear(problem.Run(isa, 1));
      };
      expect();
      w.codes[At(w.matrix.row_bytes * 2 + 700)] = 0x83;
      w.codes[At(w.matrix.row_bytes * 5 + 64)] = 0;
      w.Resolve();
      expect();
    }
  }
}

// Each code of each format, exactly.
TEST(MatmulCoded, EveryE4M3CodeIsExact) {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>((i & 0x7F) == 0x7F ? i - 1 : i);
  const float one = 1;
  const CodedMatrix matrix{.format = CodeFormat::kE4M3,
                           .n = 1,
                           .k = 256,
                           .codes = codes.data(),
                           .row_bytes = 256,
                           .scales = &one,
                           .unit_columns = 256};
  ThreadPool pool(1);
  for (const Isa isa : IsasUpTo(DetectIsa())) {
    for (size_t at = 0; at < 256; ++at) {
      std::vector<float> x(256, 0.0F);
      x[at] = 3;
      float y = kUnset;
      MultiplyCoded(matrix, {}, x.data(), 256, 1, &y, 1, isa, pool);
      ASSERT_EQ(y, 3 * FloatFromE4M3(codes[at])) << at;
    }
  }
}

TEST(MatmulCoded, ThreadsDoNotChangeResults) {
  Rng rng(43);
  for (const CodeFormat format : kFormats) {
    for (const int64_t m : {3, 60}) {
      const Problem problem(rng, {.format = format}, m, 700, 384, true);
      for (const Isa isa : IsasUpTo(DetectIsa())) {
        const std::vector<float> one = problem.Run(isa, 1);
        for (const int threads : {2, 3}) ExpectSameBits(problem.Run(isa, threads), one);
      }
    }
  }
}

}  // namespace
}  // namespace octavo
