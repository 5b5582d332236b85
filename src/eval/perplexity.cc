#include "eval/perplexity.h"

#include <chrono>
#include <cmath>
#include <numeric>

namespace octavo {

namespace {

// Sum of -log p(next token) over rows [first, first + count) of the window.
double SumNll(WindowForward* forward, std::span<const TokenId> tokens, int64_t first, int64_t count,
              ThreadPool& pool) {
  const int64_t vocab = forward->vocab_size();
  const std::span<const float> logits = forward->Logits(first, count);
  std::vector<double> nll(static_cast<size_t>(count));
  pool.ParallelFor(count, [&](int64_t row) {
    const auto one = logits.subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(vocab));
    const auto target = static_cast<size_t>(tokens[static_cast<size_t>(first + row + 1)]);
    nll[static_cast<size_t>(row)] = LogSumExp(one) - static_cast<double>(one[target]);
  });
  return std::accumulate(nll.begin(), nll.end(), 0.0);
}

}  // namespace

Result<PerplexityResult> Perplexity(const Model& model, std::span<const Window> windows,
                                    const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  PerplexityResult result;
  WindowForward forward(model, context);
  double sum = 0;
  context.progress.Start("perplexity", std::ssize(windows));
  for (const Window& window : windows) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(forward.Run(window.tokens));
    // Row i predicts token i + 1.
    const int64_t last = std::ssize(window.tokens) - 1;
    for (int64_t row = window.first_scored - 1; row < last; row += kLogitRows) {
      sum += SumNll(&forward, window.tokens, row, std::min(kLogitRows, last - row), context.pool);
    }
    result.tokens += last - (window.first_scored - 1);
    ++result.windows;
    context.progress.Advance(1);
  }
  context.progress.Finish();
  result.nll = sum / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.nll);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!std::isfinite(result.nll)) {
    return InvalidArgument(
        "the perplexity is not finite: the model computes NaN or infinite logits");
  }
  return result;
}

}  // namespace octavo
