#include "compress/bit_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace octavo {

namespace {

constexpr size_t kMaxStates = size_t{1} << 15;

// How a state came about: the option of the latest unit, behind a state of those before it.
struct Step {
  uint32_t before = 0;
  uint32_t option = 0;
};

struct State {
  int64_t bits = 0;
  double kl = 0;
  Step step;
};

// Keeps those that no other beats in both, by rising size and so falling loss.
void DropBeaten(std::vector<State>* states) {
  std::sort(states->begin(), states->end(), [](const State& a, const State& b) {
    return a.bits != b.bits ? a.bits < b.bits : a.kl < b.kl;
  });
  size_t kept = 0;
  for (const State& state : *states) {
    if (kept == 0 || state.kl < (*states)[kept - 1].kl) (*states)[kept++] = state;
  }
  states->resize(kept);
}

// Of states that lie together, the last, which has the least loss; and the smallest of all.
void Thin(std::vector<State>* states) {
  if (states->size() <= kMaxStates) return;
  const int64_t smallest = states->front().bits;
  const int64_t range = states->back().bits - smallest;
  const auto bucket = [&](const State& state) {
    return static_cast<double>(state.bits - smallest) / static_cast<double>(range) *
           static_cast<double>(kMaxStates - 2);
  };
  size_t kept = 1;
  for (size_t i = 1; i < states->size(); ++i) {
    const bool is_last =
        i + 1 == states->size() || static_cast<int64_t>(bucket((*states)[i + 1])) !=
                                       static_cast<int64_t>(bucket((*states)[i]));
    if (is_last) (*states)[kept++] = (*states)[i];
  }
  states->resize(kept);
}

// All states after the last unit, and the steps that lead to them.
class Frontier {
 public:
  explicit Frontier(std::span<const std::vector<BitOption>> units) : states_(1) {
    for (const std::vector<BitOption>& options : units) {
      OCTAVO_CHECK(!options.empty());
      std::vector<State> next;
      next.reserve(states_.size() * options.size());
      for (size_t s = 0; s < states_.size(); ++s) {
        for (size_t o = 0; o < options.size(); ++o) {
          next.push_back({.bits = states_[s].bits + options[o].bits,
                          .kl = states_[s].kl + options[o].kl,
                          .step = {static_cast<uint32_t>(s), static_cast<uint32_t>(o)}});
        }
      }
      DropBeaten(&next);
      Thin(&next);
      std::vector<Step>& steps = steps_.emplace_back();
      for (const State& state : next) steps.push_back(state.step);
      states_ = std::move(next);
    }
  }

  // By rising size and falling loss.
  const std::vector<State>& states() const { return states_; }

  BitChoice ChoiceOf(size_t state) const {
    BitChoice choice{.options = std::vector<size_t>(steps_.size()),
                     .bits = states_[state].bits,
                     .kl = states_[state].kl};
    for (size_t unit = steps_.size(); unit-- > 0;) {
      const Step step = steps_[unit][state];
      choice.options[unit] = step.option;
      state = step.before;
    }
    return choice;
  }

 private:
  std::vector<State> states_;
  std::vector<std::vector<Step>> steps_;  // of each unit, of each state after it
};

}  // namespace

Result<BitChoice> ChooseLeastLoss(std::span<const std::vector<BitOption>> units, int64_t max_bits) {
  const Frontier frontier(units);
  const auto& states = frontier.states();
  const auto above = std::partition_point(
      states.begin(), states.end(), [&](const State& state) { return state.bits <= max_bits; });
  if (above == states.begin()) {
    return InvalidArgument(fmt::format("the smallest mix of the candidates takes {} bits, not {}",
                                       states.front().bits, max_bits));
  }
  return frontier.ChoiceOf(static_cast<size_t>(above - states.begin()) - 1);
}

Result<BitChoice> ChooseLeastBits(std::span<const std::vector<BitOption>> units, double max_kl) {
  const Frontier frontier(units);
  const auto& states = frontier.states();
  const auto first = std::partition_point(states.begin(), states.end(),
                                          [&](const State& state) { return state.kl > max_kl; });
  if (first == states.end()) {
    return InvalidArgument(
        fmt::format("the most exact mix of the candidates is expected to lose {:.3g} nats, more "
                    "than {:.3g}",
                    states.back().kl, max_kl));
  }
  return frontier.ChoiceOf(static_cast<size_t>(first - states.begin()));
}

}  // namespace octavo
