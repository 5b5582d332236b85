#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/kernels.h"
#include "kernels/scratch.h"

namespace octavo {

namespace {

// Query vectors of a tile: enough to make the packing of a block of keys cheap (each is used this
// often), few enough for their scores and sums to stay in L2. A multiple of the kernel's 6 rows.
constexpr int64_t kVectorsPerTile = 96;

// Where a sequence has a single tile of rows (generation), its keys are cut in chunks of this size,
// so that a few kv heads still give all threads work.
constexpr int64_t kKeysPerChunk = 512;

// Sequence, kv head, rows and keys of one task, and where its parts go.
struct Task {
  const AttentionSequence* sequence;
  int64_t kv_head;
  int64_t row;  // within the sequence
  int64_t rows;
  int64_t key_begin;
  int64_t key_end;
  int64_t chunk;   // of the keys of these rows
  int64_t chunks;  // 1: the task writes the result itself
  int64_t part;    // where this task's vectors start among all parts
};

// The parts of all tasks that are one of several chunks.
struct Parts {
  std::vector<float> maximum;      // [vectors]
  std::vector<float> denominator;  // [vectors]
  std::vector<float> numerator;    // [vectors, head_dim]
};

int64_t DivideUp(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// The window as the kernels take it. Not the largest number there is: positions are added to it.
int64_t WindowOf(const AttentionShape& shape) {
  return shape.window > 0 ? shape.window : std::numeric_limits<int64_t>::max() / 2;
}

KvElement ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return KvElement::kF32;
    case DType::kBF16:
      return KvElement::kBf16;
    case DType::kF8E4M3:
      return KvElement::kE4M3;
    case DType::kI8:
      return KvElement::kInt8;
    default:
      OCTAVO_CHECK(false) << "keys and values of " << DTypeName(dtype);
      return KvElement::kF32;
  }
}

float ScaleOf(const float* scales, int64_t kv_head) {
  return scales == nullptr ? 1.0F : scales[kv_head];
}

std::vector<Task> PlanTasks(const AttentionShape& shape,
                            std::span<const AttentionSequence> sequences) {
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t tile_rows = std::max<int64_t>(1, kVectorsPerTile / group);
  const int64_t window = WindowOf(shape);
  std::vector<Task> tasks;
  int64_t part = 0;
  for (const AttentionSequence& sequence : sequences) {
    const bool single = sequence.rows <= tile_rows;
    for (int64_t row = 0; row < sequence.rows; row += tile_rows) {
      const int64_t rows = std::min(tile_rows, sequence.rows - row);
      // The keys that any of the rows sees, as indices into kv.
      const int64_t position = sequence.first_position + row - sequence.kv_begin;
      const int64_t first = std::max<int64_t>(0, position - window + 1);
      const int64_t keys = position + rows;
      const int64_t chunks = single ? DivideUp(keys - first, kKeysPerChunk) : 1;
      for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          const int64_t begin = first + chunk * kKeysPerChunk;
          const int64_t end = chunks == 1 ? keys : std::min(keys, begin + kKeysPerChunk);
          tasks.push_back({&sequence, kv_head, row, rows, begin, end, chunk, chunks, part});
          if (chunks > 1) part += rows * group;
        }
      }
    }
  }
  return tasks;
}

// The last step: out = sum over parts of exp(maximum_c - maximum) numerator_c, divided by the
// denominators' sum of the same weights, times the values' scale. Parts of a vector lie `stride`
// vectors apart.
void MergeParts(const float* maximum, const float* denominator, const float* numerator,
                int64_t parts, int64_t stride, int64_t head_dim, float value_scale, float* out) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < parts; ++c) largest = std::max(largest, maximum[c * stride]);
  float sum = 0;
  for (int64_t c = 0; c < parts; ++c) {
    const float weight = std::exp(maximum[c * stride] - largest);
    sum += weight * denominator[c * stride];
    const float* values = numerator + c * stride * head_dim;
    for (int64_t d = 0; d < head_dim; ++d) out[d] = (c == 0 ? 0 : out[d]) + weight * values[d];
  }
  for (int64_t d = 0; d < head_dim; ++d) out[d] = out[d] / sum * value_scale;
}

}  // namespace

std::span<const AttentionKernel> AttentionKernels() {
  static constexpr AttentionKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, scratch, exactness) \
  {Isa::isa, #function, function, scratch, Exactness::exactness},
#include "kernels/attention/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void Attend(const AttentionShape& shape, std::span<const AttentionSequence> sequences,
            const float* q, int64_t ldq, float* out, int64_t ldo, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0)
      << shape.heads << " heads over " << shape.kv_heads;
  const AttentionKernel& kernel =
      BestKernel(AttentionKernels(), shape.soft_cap == 0 ? isa : Isa::kRef);
  const int64_t dim = shape.head_dim;
  const int64_t group = shape.heads / shape.kv_heads;
  const std::vector<Task> tasks = PlanTasks(shape, sequences);
  int64_t part_vectors = 0;
  for (const Task& task : tasks) part_vectors += task.chunks > 1 ? task.rows * group : 0;
  Parts parts{std::vector<float>(static_cast<size_t>(part_vectors)),
              std::vector<float>(static_cast<size_t>(part_vectors)),
              std::vector<float>(static_cast<size_t>(part_vectors * dim))};

  // The merged or only part of a task's vectors, to their place in out.
  const auto write = [&](const Task& task, const float* maximum, const float* denominator,
                         const float* numerator) {
    const int64_t vectors = task.rows * group;
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t row = task.sequence->first_row + task.row + v / group;
      float* to = out + row * ldo + (task.kv_head * group + v % group) * dim;
      MergeParts(maximum + v, denominator + v, numerator + v * dim, task.chunks, vectors, dim,
                 ScaleOf(task.sequence->kv.value_scales, task.kv_head), to);
    }
  };

  pool.ParallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t index) {
    const Task& task = tasks[static_cast<size_t>(index)];
    const AttentionSequence& sequence = *task.sequence;
    const int64_t vectors = task.rows * group;
    const int64_t kernel_scratch = kernel.scratch_floats(vectors, dim);
    float* scratch = ThreadScratch(kernel_scratch + vectors * (dim + 2));
    float* own = scratch + kernel_scratch;
    const bool only = task.chunks == 1;
    const int64_t head_offset =
        task.kv_head * sequence.kv.head_stride * DTypeBytes(sequence.kv.dtype);
    const AttentionTile tile{
        .q = q + (sequence.first_row + task.row) * ldq + task.kv_head * group * dim,
        .ldq = ldq,
        .rows = task.rows,
        .heads = group,
        .head_dim = dim,
        .scale = shape.scale * ScaleOf(sequence.kv.key_scales, task.kv_head),
        .soft_cap = shape.soft_cap,
        .first_position = sequence.first_position + task.row - sequence.kv_begin,
        .window = WindowOf(shape),
        .key_begin = task.key_begin,
        .key_end = task.key_end,
        .element = ElementOf(sequence.kv.dtype),
        .keys = static_cast<const std::byte*>(sequence.kv.keys) + head_offset,
        .values = static_cast<const std::byte*>(sequence.kv.values) + head_offset,
        .token_stride = sequence.kv.token_stride,
        .scratch = scratch,
        .maximum = only ? own : parts.maximum.data() + task.part,
        .denominator = only ? own + vectors : parts.denominator.data() + task.part,
        .numerator = only ? own + 2 * vectors : parts.numerator.data() + task.part * dim};
    kernel.run(tile);
    if (only) write(task, tile.maximum, tile.denominator, tile.numerator);
  });

  for (const Task& task : tasks) {
    if (task.chunks == 1 || task.chunk != 0) continue;
    write(task, parts.maximum.data() + task.part, parts.denominator.data() + task.part,
          parts.numerator.data() + task.part * dim);
  }
}

}  // namespace octavo
