#include "eval/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace octavo {

namespace {

struct RowDivergence {
  double kl = 0;
  bool same_top1 = false;
};

RowDivergence CompareRow(std::span<const float> base, std::span<const float> model) {
  const double base_norm = LogSumExp(base);
  const double model_norm = LogSumExp(model);
  RowDivergence row;
  for (size_t i = 0; i < base.size(); ++i) {
    const double log_p = static_cast<double>(base[i]) - base_norm;
    const double log_q = static_cast<double>(model[i]) - model_norm;
    row.kl += static_cast<double>(std::exp(static_cast<float>(log_p))) * (log_p - log_q);
  }
  row.same_top1 = std::max_element(base.begin(), base.end()) - base.begin() ==
                  std::max_element(model.begin(), model.end()) - model.begin();
  return row;
}

}  // namespace

Result<DivergenceResult> Divergence(const Model& base, const Model& model,
                                    std::span<const Window> windows, const Context& context) {
  if (base.spec.vocab_size != model.spec.vocab_size) {
    return InvalidArgument(
        fmt::format("the models have vocabularies of {} and {} tokens and cannot be compared",
                    base.spec.vocab_size, model.spec.vocab_size));
  }
  WindowForward base_forward(base, context);
  WindowForward model_forward(model, context);
  const auto vocab = static_cast<size_t>(base.spec.vocab_size);
  DivergenceResult result;
  double same = 0;
  context.progress.Start("divergence", std::ssize(windows));
  for (const Window& window : windows) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(base_forward.Run(window.tokens));
    OCTAVO_RETURN_IF_ERROR(model_forward.Run(window.tokens));
    const int64_t rows = std::ssize(window.tokens);
    for (int64_t first = 0; first < rows; first += kLogitRows) {
      const int64_t count = std::min(kLogitRows, rows - first);
      const std::span<const float> base_logits = base_forward.Logits(first, count);
      const std::span<const float> model_logits = model_forward.Logits(first, count);
      std::vector<RowDivergence> compared(static_cast<size_t>(count));
      context.pool.ParallelFor(count, [&](int64_t row) {
        const size_t at = static_cast<size_t>(row) * vocab;
        compared[static_cast<size_t>(row)] =
            CompareRow(base_logits.subspan(at, vocab), model_logits.subspan(at, vocab));
      });
      for (const RowDivergence& row : compared) {
        result.kl += row.kl;
        same += row.same_top1 ? 1 : 0;
      }
    }
    result.positions += rows;
    context.progress.Advance(1);
  }
  context.progress.Finish();
  result.kl /= static_cast<double>(result.positions);
  result.same_top1 = same / static_cast<double>(result.positions);
  return result;
}

}  // namespace octavo
