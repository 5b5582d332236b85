#include "eval/throughput.h"

#include <algorithm>
#include <chrono>

#include "runtime/session.h"

namespace octavo {

namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<ThroughputResult> MeasureThroughput(const Model& model, std::span<const TokenId> prompt,
                                           int64_t decode_tokens, const Context& context) {
  constexpr int kPrefills = 3;
  ThroughputResult result;
  result.prefill_tokens = std::ssize(prompt);
  result.decode_tokens = decode_tokens;
  for (int i = 0; i < kPrefills; ++i) {
    Session session(model, context, DType::kBF16);
    auto start = std::chrono::steady_clock::now();
    OCTAVO_ASSIGN_OR_RETURN(std::span<const float> logits, session.Feed(prompt));
    result.prefill_tokens_per_second = std::max(
        result.prefill_tokens_per_second, static_cast<double>(prompt.size()) / SecondsSince(start));
    if (i + 1 < kPrefills) continue;
    start = std::chrono::steady_clock::now();
    for (int64_t t = 0; t < decode_tokens; ++t) {
      const TokenId token = Argmax(logits);
      OCTAVO_ASSIGN_OR_RETURN(logits, session.Feed({&token, 1}));
    }
    result.decode_tokens_per_second = static_cast<double>(decode_tokens) / SecondsSince(start);
  }
  return result;
}

}  // namespace octavo
