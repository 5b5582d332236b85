#include "kernels/matmul_coded/matmul_coded.h"

#include <fmt/format.h>

#include <cstring>

#include "base/rng.h"
#include "bench/families/inputs.h"
#include "bench/kernel_case.h"
#include "bench/onednn_matmul.h"
#include "bench/timing.h"
#include "kernels/matmul_coded/kernels.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

// How a scheme stores its weights.
struct Storage {
  const char* name;
  CodeFormat codes;
  ScaleFormat scales;
  int64_t unit_rows;
  int64_t unit_columns;  // 0: k
  bool zero_points;
};

constexpr Storage kStorages[] = {
    {"int8 channel", CodeFormat::kInt8, ScaleFormat::kBf16, 1, 0, false},
    {"int8 g128", CodeFormat::kInt8, ScaleFormat::kBf16, 1, 128, false},
    {"fp8 channel", CodeFormat::kE4M3, ScaleFormat::kBf16, 1, 0, false},
    {"fp8 block", CodeFormat::kE4M3, ScaleFormat::kBf16, 128, 128, false},
    {"mxfp8", CodeFormat::kE4M3, ScaleFormat::kE8M0, 1, 32, false},
    {"int4 g128", CodeFormat::kNibble, ScaleFormat::kBf16, 1, 128, false},
    {"int4 g32 asym", CodeFormat::kNibble, ScaleFormat::kBf16, 1, 32, true},
    {"nvfp4", CodeFormat::kNibble, ScaleFormat::kE4M3, 1, 16, false},
    {"mxfp4", CodeFormat::kNibble, ScaleFormat::kE8M0, 1, 32, false}};

constexpr MatrixShape kShapes[] = {kMatrixShapes[2], kMatrixShapes[4], kMatrixShapes[5]};

int64_t Parts(int64_t size, int64_t part) {
  return (size + part - 1) / part;
}

int64_t ScaleBytes(ScaleFormat format) {
  return format == ScaleFormat::kF32 ? 4 : format == ScaleFormat::kBf16 ? 2 : 1;
}

// A matrix without its data, and how much it has.
struct Layout {
  CodedMatrix matrix;
  int64_t units;
  int64_t bytes;  // codes, scales and zero points

  Layout(const Storage& storage, const MatrixShape& shape) {
    const int64_t unit_columns = storage.unit_columns == 0 ? shape.k : storage.unit_columns;
    matrix = {.format = storage.codes,
              .n = shape.n,
              .k = shape.k,
              .row_bytes = storage.codes == CodeFormat::kNibble ? Parts(shape.k, 2) : shape.k,
              .scale_format = storage.scales,
              .scale_columns = Parts(shape.k, unit_columns),
              .unit_rows = storage.unit_rows,
              .unit_columns = unit_columns};
    for (size_t code = 0; code < 16; ++code) matrix.table[code] = static_cast<float>(code) - 8;
    units = Parts(shape.n, storage.unit_rows) * matrix.scale_columns;
    bytes = shape.n * matrix.row_bytes +
            units * (ScaleBytes(storage.scales) + (storage.zero_points ? 1 : 0));
  }
};

struct Matmul {
  Tensor x;
  Tensor y;
  std::vector<Tensor> codes;
  Tensor scales;  // for every copy its own
  Tensor zero_points;
  std::vector<CodedMatrix> weights;
  Turns turns{0};
  Tensor rival_x;
  std::unique_ptr<OnednnMatmul> rival;
};

// Scales of about 1, so that nothing overflows.
void FillScales(ScaleFormat format, Tensor* scales) {
  constexpr uint8_t kOneInE4M3 = 0x38;
  constexpr uint8_t kOneInE8M0 = 127;
  constexpr uint16_t kOneInBf16 = 0x3F80;
  if (format == ScaleFormat::kBf16) {
    for (uint16_t& scale : scales->mutable_data<uint16_t>()) scale = kOneInBf16;
  } else {
    const uint8_t one = format == ScaleFormat::kE4M3 ? kOneInE4M3 : kOneInE8M0;
    std::memset(scales->bytes(), one, static_cast<size_t>(scales->num_bytes()));
  }
}

// Each code of four bits, or int8, as often as another; E4M3 codes as weights have them, which fill
// the range: few are subnormal.
Tensor RandomCodes(CodeFormat format, Shape shape) {
  constexpr float kLargestE4M3 = 448;
  Tensor codes(DType::kU8, std::move(shape));
  Rng rng(8);
  for (uint8_t& code : codes.mutable_data<uint8_t>()) {
    code = format == CodeFormat::kE4M3
               ? E4M3FromFloat(kLargestE4M3 * static_cast<float>(rng.Uniform() + rng.Uniform() - 1))
               : static_cast<uint8_t>(rng.Below(256));
  }
  return codes;
}

// The faster of oneDNN's matmuls in bf16 and f32 on the same shape.
void MakeRival(const MatrixShape& shape, int64_t m, const CaseOptions& options, Matmul* matmul) {
  constexpr double kTrialSeconds = 0.05;
  const Context context{.pool = options.pool};
  double best = 0;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor w = RandomTensor(dtype, {shape.n, shape.k});
    Tensor x = RandomTensor(dtype, {m, shape.k});
    auto rival = OnednnMatmul::Make(w, {}, x, matmul->y.mutable_data<float>().data(), options.isa,
                                    options.pool.num_threads());
    if (rival == nullptr) continue;
    const std::function<void()> run = [&rival] { rival->Run(); };
    const double seconds = MeasureInTurns({&run, 1}, kTrialSeconds, context)[0];
    if (matmul->rival != nullptr && seconds >= best) continue;
    best = seconds;
    matmul->rival = std::move(rival);
    matmul->rival_x = std::move(x);
  }
}

Contenders Prepare(const Storage& storage, const MatrixShape& shape, int64_t m,
                   const CaseOptions& options) {
  auto matmul = std::make_shared<Matmul>();
  matmul->x = RandomTensor(DType::kF32, {m, shape.k});
  matmul->y = Tensor(DType::kF32, {m, shape.n});
  const Layout layout(storage, shape);
  const int64_t copies = CopiesFor(m, layout.bytes, options.memory);
  const DType scale_type = storage.scales == ScaleFormat::kBf16 ? DType::kBF16 : DType::kU8;
  matmul->scales = Tensor(scale_type, {copies * layout.units});
  FillScales(storage.scales, &matmul->scales);
  matmul->zero_points = Tensor(DType::kI8, {copies * layout.units});
  std::memset(matmul->zero_points.bytes(), 1, static_cast<size_t>(matmul->zero_points.num_bytes()));
  const Tensor random = RandomCodes(storage.codes, {shape.n, layout.matrix.row_bytes});
  for (int64_t i = 0; i < copies; ++i) {
    Tensor codes = Tensor::InLargePages(DType::kU8, random.shape());
    std::memcpy(codes.bytes(), random.view().bytes, static_cast<size_t>(codes.num_bytes()));
    CodedMatrix matrix = layout.matrix;
    matrix.codes = codes.data<uint8_t>().data();
    matrix.scales = matmul->scales.bytes() + i * layout.units * ScaleBytes(storage.scales);
    if (storage.zero_points)
      matrix.zero_points = matmul->zero_points.data<int8_t>().data() + i * layout.units;
    matmul->weights.push_back(matrix);
    matmul->codes.push_back(std::move(codes));
  }
  matmul->turns = Turns(matmul->weights.size());
  if (m > kFewRows) MakeRival(shape, m, options, matmul.get());
  Contenders contenders;
  contenders.kernel = [matmul, m, shape, isa = options.isa, &pool = options.pool] {
    MultiplyCoded(matmul->weights[matmul->turns.Next()], {}, matmul->x.data<float>().data(),
                  shape.k, m, matmul->y.mutable_data<float>().data(), shape.n, isa, pool);
  };
  if (matmul->rival != nullptr) contenders.rival = [matmul] { matmul->rival->Run(); };
  return contenders;
}

}  // namespace

// As with dense weights the products are f32.
void AddMatmulCoded(const CaseOptions& options, std::vector<KernelCase>* cases) {
  for (const Storage& storage : kStorages) {
    for (const MatrixShape& shape : kShapes) {
      for (const int64_t m : {1, 4, 32, 128, 512}) {
        const int64_t bytes = Layout(storage, shape).bytes;
        const double activations =
            4 * static_cast<double>(m) * static_cast<double>(shape.k + shape.n);
        cases->push_back(
            {.kernel = fmt::format("matmul_coded {}", storage.name),
             .shape = fmt::format("{}, n {}, k {}, m {}", shape.name, shape.n, shape.k, m),
             .isa = BestCodedKernel(storage.codes, options.isa).isa,
             .arithmetic = RoofKind::kF32,
             .operations = 2 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k),
             .bytes = static_cast<double>(bytes) + activations,
             .footprint = bytes * CopiesFor(m, bytes, options.memory),
             .prepare = [=] { return Prepare(storage, shape, m, options); }});
      }
    }
  }
}

}  // namespace octavo
