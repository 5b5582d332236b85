#include "bench/timing.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace octavo {

namespace {

// A turn: long enough that the caches are the contender's own, short enough to have many.
constexpr double kTurnSeconds = 0.02;

// Between turns threads of the one before stop looking for work (libgomp's spin for some
// milliseconds).
constexpr auto kPause = std::chrono::milliseconds(4);

constexpr size_t kFewestCalls = 3;

double TimeOf(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Record {
  std::vector<double> calls;
  double sum = 0;

  void TakeTurn(const std::function<void()>& run, double turn_seconds) {
    for (double turn = 0; turn < turn_seconds;) {
      const double call = TimeOf(run);
      calls.push_back(call);
      sum += call;
      // A clock that stands still would never end a turn.
      turn += std::max(call, 1e-8);
    }
  }

  bool done(double seconds) const { return calls.size() >= kFewestCalls && sum >= seconds; }

  double tenth_percentile() {
    const auto at = calls.begin() + static_cast<std::ptrdiff_t>(calls.size() / 10);
    std::nth_element(calls.begin(), at, calls.end());
    return *at;
  }
};

}  // namespace

std::vector<double> MeasureInTurns(std::span<const std::function<void()>> contenders,
                                   double seconds, const Context& context) {
  std::vector<Record> records(contenders.size());
  for (const auto& contender : contenders)
    contender();  // caches, page tables, code made at run time
  const auto all_done = [&] {
    return std::all_of(records.begin(), records.end(),
                       [&](const Record& record) { return record.done(seconds); });
  };
  do {
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (contenders.size() > 1) std::this_thread::sleep_for(kPause);
      if (records[i].calls.empty() || !records[i].done(seconds))
        records[i].TakeTurn(contenders[i], std::min(seconds, kTurnSeconds));
    }
  } while (!all_done() && context.CheckCancelled().ok());
  std::vector<double> result;
  for (Record& record : records) result.push_back(record.tenth_percentile());
  return result;
}

}  // namespace octavo
