#include "eval/batch_size.h"

#include <algorithm>

#include "runtime/scheduler.h"
#include "runtime/states.h"

namespace octavo {

namespace {

// Where nothing is known of memory.
constexpr int64_t kUsual = 16;
// Weights are mapped files, whose pages count as free and are needed; so is what others take later.
constexpr double kTakenShare = 0.5;

}  // namespace

int64_t AnswerBytes(const Model& model, int64_t positions) {
  // Buffers grow to twice what they hold.
  return 2 * positions * CacheBytesOfToken(model, DType::kF32) +
         model.spec.vocab_size * static_cast<int64_t>(sizeof(float));
}

int64_t BatchSizeFor(int64_t answer_bytes, std::optional<int64_t> free_bytes) {
  if (!free_bytes) return kUsual;
  const auto taken = static_cast<int64_t>(static_cast<double>(*free_bytes) * kTakenShare);
  return std::clamp<int64_t>(taken / answer_bytes, 1, Scheduler::kDecodeRows);
}

}  // namespace octavo
