#include "eval/lockstep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <string>

#include "eval/lockstep_sums.h"

namespace octavo {

namespace {

// One model that reads along; the base is the first of them.
struct Reader {
  Reader(const NamedModel& named, const Context& context)
      : name(named.name), forward(named.model, context) {}

  std::string name;
  WindowForward forward;
  std::span<const float> logits;  // of the latest piece
  std::vector<ScoredRow> rows;
  QualitySums quality;
  DivergenceSums divergence;  // not the base's
};

class Walk {
 public:
  Walk(const NamedModel& base, std::span<const NamedModel> models, const Context& context)
      : vocab_(static_cast<size_t>(base.model.spec.vocab_size)), context_(context) {
    readers_.emplace_back(base, context);
    for (const NamedModel& model : models) readers_.emplace_back(model, context);
  }

  Status Read(const Window& window) {
    for (Reader& reader : readers_)
      OCTAVO_RETURN_IF_ERROR(reader.forward.Run(window.tokens).Annotate(reader.name));
    const int64_t end = std::ssize(window.tokens);
    for (int64_t row = window.first_scored - 1; row < end; row += kLogitRows)
      OCTAVO_RETURN_IF_ERROR(ReadRows(window, row, std::min(kLogitRows, end - row)));
    for (Reader& reader : readers_) {
      reader.quality.EndWindow();
      reader.divergence.EndWindow();
    }
    const int64_t positions = end - (window.first_scored - 1);
    result_.positions += positions;
    result_.tokens += positions - 1;
    ++result_.windows;
    return OkStatus();
  }

  LockstepResult Take() {
    result_.base = readers_.front().quality.Take();
    for (size_t i = 1; i < readers_.size(); ++i)
      result_.models.push_back({readers_[i].quality.Take(), readers_[i].divergence.Take()});
    return std::move(result_);
  }

 private:
  // Positions [first, first + count) of the window.
  Status ReadRows(const Window& window, int64_t first, int64_t count) {
    const auto rows = static_cast<size_t>(count);
    exponentials_.resize(rows * vocab_);
    kl_.assign(readers_.size(), std::vector<double>(rows));
    for (Reader& reader : readers_) {
      reader.logits = reader.forward.Logits(first, count);
      reader.rows.assign(rows, {});
    }
    context_.pool.ParallelFor(count, [&](int64_t row) { CompareRow(window, first, row); });
    const Reader& base = readers_.front();
    for (size_t i = 0; i < readers_.size(); ++i) {
      Reader& reader = readers_[i];
      for (const ScoredRow& row : reader.rows) {
        if (!std::isfinite(row.prediction.sum))
          return InvalidArgument(reader.name + ": the head computes NaN or infinite logits");
      }
      reader.quality.Add(reader.rows);
      if (i > 0) reader.divergence.Add(base.rows, reader.rows, kl_[i]);
    }
    return OkStatus();
  }

  // Row `row` of a piece that begins at position `first`, of all readers.
  void CompareRow(const Window& window, int64_t first, int64_t row) {
    const auto at = static_cast<size_t>(row);
    const auto next = static_cast<size_t>(first + row + 1);
    const auto row_of = [&](std::span<const float> all) {
      return all.subspan(at * vocab_, vocab_);
    };
    const auto exponentials = std::span(exponentials_).subspan(at * vocab_, vocab_);
    const Reader& base = readers_.front();
    for (size_t i = 0; i < readers_.size(); ++i) {
      const std::span<const float> logits = row_of(readers_[i].logits);
      ScoredRow& scored = readers_[i].rows[at];
      scored.prediction = Predict(logits, i == 0 ? exponentials : std::span<float>());
      scored.has_target = next < window.tokens.size();
      if (scored.has_target) {
        const TokenId target = window.tokens[next];
        scored.nll = scored.prediction.log_normalizer() -
                     static_cast<double>(logits[static_cast<size_t>(target)]);
        scored.right = scored.prediction.top.front() == target;
      }
      if (i > 0) {
        kl_[i][at] = KlDivergence(row_of(base.logits), exponentials, base.rows[at].prediction,
                                  logits, scored.prediction);
      }
    }
  }

  size_t vocab_;
  const Context& context_;
  std::deque<Reader> readers_;
  std::vector<float> exponentials_;      // [rows, vocab], the base's
  std::vector<std::vector<double>> kl_;  // of each reader, of each row
  LockstepResult result_;
};

}  // namespace

Result<LockstepResult> Lockstep(const NamedModel& base, std::span<const NamedModel> models,
                                std::span<const Window> windows, const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  for (const NamedModel& named : models) {
    if (named.model.spec.vocab_size == base.model.spec.vocab_size) continue;
    return InvalidArgument(fmt::format(
        "{} has a vocabulary of {} tokens, {} one of {}: they cannot be compared", named.name,
        named.model.spec.vocab_size, base.name, base.model.spec.vocab_size));
  }
  Walk walk(base, models, context);
  context.progress.Start("compare", std::ssize(windows));
  for (const Window& window : windows) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(walk.Read(window));
    context.progress.Advance(1);
  }
  context.progress.Finish();
  LockstepResult result = walk.Take();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace octavo
