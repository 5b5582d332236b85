#include "compress/estimate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/usage.h"
#include "compress/calibration.h"
#include "kernels/matmul_float/matmul_float.h"
#include "tensor/tensor.h"

namespace octavo {

namespace {

// The share of the timed rate that a whole run reaches: attention, norms, copies and waiting.
constexpr double kEfficiency = 0.6;
// INT8 matmuls take about this share of a float32 one's time.
constexpr double kInt8Share = 0.3;

// Floating-point operations a second of all threads, on a matrix that fits in the caches.
double TimeFloatMatmul(const Context& context) {
  constexpr int64_t kRows = 256;
  constexpr int64_t kSize = 768;
  const Tensor w = Tensor::Zeros(DType::kF32, {kSize, kSize});
  const std::vector<float> x(static_cast<size_t>(kRows * kSize));
  std::vector<float> y(x.size());
  double best = 1;
  for (int i = 0; i < 4; ++i) {
    const auto start = std::chrono::steady_clock::now();
    MultiplyFloat(w, {}, x.data(), kSize, kRows, y.data(), kSize, context.isa, context.pool);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (i == 0 || seconds.count() < best) best = seconds.count();
  }
  return 2.0 * kRows * kSize * kSize / best;
}

// Sizes of one block that everything follows from.
struct BlockSizes {
  double weights = 0;          // elements of all linear layers
  double down = 0;             // of the last one, which observation leaves out
  double largest_layer = 0;    // elements
  double hessians = 0;         // elements: sum over groups of k^2
  double largest_hessian = 0;  // elements
  double layer_work = 0;       // sum over layers of n k^2
  double factor_work = 0;      // sum over groups of k^3
  double row = 0;              // floats of scratch a row of a pass needs
};

void AddGroup(const LinearGroup& group, BlockSizes* sizes) {
  const auto k = static_cast<double>(group.k());
  for (const LinearLayer& layer : group.layers) {
    const double elements = static_cast<double>(layer.n) * k;
    sizes->weights += elements;
    sizes->largest_layer = std::max(sizes->largest_layer, elements);
    sizes->layer_work += elements * k;
  }
  sizes->hessians += k * k;
  sizes->largest_hessian = std::max(sizes->largest_hessian, k * k);
  sizes->factor_work += k * k * k;
}

BlockSizes SizesOf(const Model& model, const Block& block) {
  BlockSizes sizes;
  for (const LinearGroup* group : block.groups()) {
    AddGroup(*group, &sizes);
    sizes.row += static_cast<double>(group->n() + group->k());
  }
  sizes.down = static_cast<double>(block.down.n() * block.down.k());
  sizes.row += 4 * static_cast<double>(model.spec.hidden_size);
  return sizes;
}

double BlockBytes(const BlockSizes& block, const QuantizationPlan& plan, Propagate propagate) {
  constexpr double kFloat = sizeof(float);
  const StatisticsNeeds& needs = plan.needs;
  // As stored and mapped, or rotated; as floats, as codes (found, as stored, as the kernel wants
  // them).
  const double read = plan.rotates() ? kFloat : 2;
  double bytes = block.weights * (read + kFloat + 3);
  if (propagate == Propagate::kWeights) bytes += block.weights * kFloat;
  bytes += block.largest_layer * 3 * kFloat;  // while its error is measured
  if (needs.hessian) bytes += (block.hessians + 3 * block.largest_hessian) * kFloat;
  bytes += block.row * static_cast<double>(kRowsPerPass) * 2 * kFloat;
  return bytes;
}

double Operations(const BlockSizes& block, const StatisticsNeeds& needs, Propagate propagate,
                  double tokens) {
  double operations = 0;
  if (tokens > 0) {
    operations += 2 * tokens * (block.weights - block.down);
    const double share = propagate == Propagate::kFull ? kInt8Share : 1;
    operations += 2 * tokens * block.weights * share;
  }
  if (needs.hessian) {
    operations += tokens * block.hessians;
    operations += 4 * block.layer_work + block.factor_work;
  }
  // Reading, rounding and packing: some operations an element, at a fraction of the matmul's rate.
  return operations + 200 * block.weights;
}

}  // namespace

Result<Estimate> EstimateQuantization(const QuantizeOptions& options, const QuantizationPlan& plan,
                                      const Dataset& dataset, int64_t output_bytes,
                                      const Context& context) {
  const auto tokens = static_cast<double>(dataset.tokens);
  double block_bytes = 0;
  double operations = 0;
  for (const Block& block : plan.target.blocks) {
    const BlockSizes sizes = SizesOf(plan.target, block);
    block_bytes = std::max(block_bytes, BlockBytes(sizes, plan, options.propagate));
    operations += Operations(sizes, plan.needs, options.propagate, tokens);
    // Keys and values are looked at in a pass of their own.
    if (plan.quantizes_attention())
      operations += 2 * tokens * static_cast<double>(block.qkv.n() * block.qkv.k());
  }
  if (plan.quantizes_head()) {
    BlockSizes head;
    AddGroup(plan.target.head, &head);
    block_bytes = std::max(block_bytes, BlockBytes(head, plan, Propagate::kNone));
    operations += Operations(head, plan.needs, Propagate::kNone, 0);  // no token goes through it
  }
  if (plan.rotates()) {
    // The embedding, while its rows are rotated.
    const LinearLayer& embedding = plan.target.embedding_layer;
    block_bytes = std::max(block_bytes, static_cast<double>(embedding.n * embedding.k *
                                                            DTypeBytes(embedding.model_dtype)));
  }
  if (plan.quantizes_embedding()) {
    const LinearLayer& layer = plan.target.embedding_layer;
    BlockSizes embedding;
    embedding.weights = embedding.largest_layer = static_cast<double>(layer.n * layer.k);
    block_bytes = std::max(block_bytes, BlockBytes(embedding, plan, Propagate::kNone));
    operations += Operations(embedding, {}, Propagate::kNone, 0);
  }
  const auto base = static_cast<int64_t>(block_bytes) + CurrentRssBytes();
  const int64_t hidden_bytes =
      dataset.tokens * plan.target.spec.hidden_size * static_cast<int64_t>(sizeof(float));
  const int64_t half_of_all = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
  const int64_t budget = options.memory_bytes > 0 ? options.memory_bytes : half_of_all;
  if (options.memory_bytes > 0 && base > budget) {
    return OutOfMemory(
        fmt::format("--memory is {} MiB, but one block of the model alone needs about {} MiB: "
                    "weights as floats and as codes, Hessians, a pass of {} tokens",
                    budget >> 20, base >> 20, kRowsPerPass));
  }
  Estimate estimate;
  estimate.hidden_in_memory = base + hidden_bytes <= budget;
  estimate.memory_bytes = base + (estimate.hidden_in_memory ? hidden_bytes : 0);
  estimate.output_bytes = output_bytes;
  estimate.work_bytes = 2 * hidden_bytes;
  estimate.seconds = operations / (TimeFloatMatmul(context) * kEfficiency);
  return estimate;
}

Status CheckDiskSpace(const std::filesystem::path& out, const Estimate& estimate) {
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(out, error);
  while (!std::filesystem::exists(existing, error) && existing.has_relative_path())
    existing = existing.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(existing, error);
  if (error) return OkStatus();  // a file system that does not say; it will say when it is full
  const int64_t needed = estimate.output_bytes + estimate.work_bytes;
  if (space.available >= static_cast<uintmax_t>(needed)) return OkStatus();
  return IoError(fmt::format(
      "{}: the output takes {:.1f} MB and the work on it up to {:.1f} MB more, but only {:.1f} MB "
      "are free; free space there or choose another folder",
      out.string(), static_cast<double>(estimate.output_bytes) / 1e6,
      static_cast<double>(estimate.work_bytes) / 1e6, static_cast<double>(space.available) / 1e6));
}

}  // namespace octavo
