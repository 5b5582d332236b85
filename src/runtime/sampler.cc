#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace octavo {

namespace {

// The largest logit, where it is, and whether any is NaN. Blocks of lanes, because a vocabulary is
// long and compilers do not vectorize the search for a float maximum.
struct Extremes {
  float largest = -std::numeric_limits<float>::infinity();
  size_t index = 0;
  bool has_nan = false;
};

Extremes FindLargest(std::span<const float> logits) {
  constexpr size_t kLanes = 16;
  constexpr size_t kBlock = 64 * kLanes;
  Extremes result;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::span<const float> block =
        logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    float lanes[kLanes];
    std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
    int32_t unordered[kLanes] = {};
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const float value = block[i + lane];
        lanes[lane] = value > lanes[lane] ? value : lanes[lane];
        unordered[lane] |= value != value ? 1 : 0;
      }
    }
    for (; i < block.size(); ++i) {
      lanes[0] = std::max(lanes[0], block[i]);
      unordered[0] |= std::isnan(block[i]) ? 1 : 0;
    }
    for (const int32_t lane : unordered) result.has_nan |= lane != 0;
    const float largest = *std::max_element(lanes, lanes + kLanes);
    if (largest > result.largest) {
      const auto place = std::find(block.begin(), block.end(), largest) - block.begin();
      result.index = begin + static_cast<size_t>(place);
      result.largest = largest;
    }
  }
  return result;
}

// exp(-45) is 3e-20: a draw of 53 bits cannot meet it, and most of a vocabulary lies below.
constexpr double kNegligible = -45;

// Each token with exp((logit - largest) / temperature): the most likely has 1.
std::vector<Candidate> Weigh(std::span<const float> logits, double temperature) {
  OCTAVO_CHECK(temperature > 0 && !logits.empty());
  const auto largest = static_cast<double>(FindLargest(logits).largest);
  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double scaled = (static_cast<double>(logits[i]) - largest) / temperature;
    candidates[i] = {static_cast<int32_t>(i), scaled < kNegligible ? 0.0 : std::exp(scaled)};
  }
  return candidates;
}

double Sum(const std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.probability;
  return sum;
}

void DropBelow(double least, std::vector<Candidate>* candidates) {
  std::erase_if(*candidates,
                [least](const Candidate& candidate) { return candidate.probability < least; });
}

bool MoreLikely(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

// Sorts and keeps the smallest set of the most likely that reaches `wanted`, at least one. Only as
// many as matter are sorted: a vocabulary has 50,000 tokens and more.
void KeepMostLikely(double wanted, std::vector<Candidate>* candidates) {
  double sum = 0;
  auto sorted_end = candidates->begin();
  for (int64_t more = 64; sorted_end != candidates->end(); more *= 8) {
    const auto begin = sorted_end;
    sorted_end += std::min<int64_t>(more, candidates->end() - begin);
    std::partial_sort(begin, sorted_end, candidates->end(), MoreLikely);
    for (auto candidate = begin; candidate != sorted_end; ++candidate) {
      sum += candidate->probability;
      if (sum < wanted) continue;
      candidates->erase(candidate + 1, candidates->end());
      return;
    }
  }
}

}  // namespace

Status SamplingParams::Check() const {
  const auto refuse = [](std::string_view name, double value, std::string_view range) {
    return InvalidArgument(fmt::format("{} is {}; {} is expected", name, value, range));
  };
  if (!(temperature >= 0) || !std::isfinite(temperature))
    return refuse("temperature", temperature, "0 or more");
  if (top_k < 0) return refuse("top-k", static_cast<double>(top_k), "0 (off) or more");
  if (!(top_p > 0 && top_p <= 1)) return refuse("top-p", top_p, "more than 0, at most 1");
  if (!(min_p >= 0 && min_p <= 1)) return refuse("min-p", min_p, "0 (off) to 1");
  if (!(repetition_penalty > 0) || !std::isfinite(repetition_penalty))
    return refuse("repetition-penalty", repetition_penalty, "more than 0 (1: off)");
  if (!std::isfinite(frequency_penalty))
    return refuse("frequency-penalty", frequency_penalty, "a number (0: off)");
  if (!std::isfinite(presence_penalty))
    return refuse("presence-penalty", presence_penalty, "a number (0: off)");
  return OkStatus();
}

std::vector<Candidate> FilterLogits(std::span<const float> logits, const SamplingParams& params) {
  std::vector<Candidate> kept = Weigh(logits, params.temperature);
  if (params.top_k > 0 && params.top_k < std::ssize(kept)) {
    const auto kth = kept.begin() + (params.top_k - 1);
    std::nth_element(kept.begin(), kth, kept.end(), MoreLikely);
    DropBelow(kth->probability, &kept);
  }
  if (params.top_p < 1) KeepMostLikely(params.top_p * Sum(kept), &kept);
  DropBelow(params.min_p, &kept);
  std::sort(kept.begin(), kept.end(), MoreLikely);
  const double sum = Sum(kept);
  for (Candidate& candidate : kept) candidate.probability /= sum;
  return kept;
}

int32_t Argmax(std::span<const float> logits) {
  return static_cast<int32_t>(FindLargest(logits).index);
}

Result<int32_t> CheckedArgmax(std::span<const float> logits) {
  const Extremes extremes = FindLargest(logits);
  if (!extremes.has_nan && std::isfinite(extremes.largest))
    return static_cast<int32_t>(extremes.index);
  return InvalidArgument("the model computes NaN or infinite logits: its weights are damaged");
}

int32_t SampleToken(std::span<const float> logits, const SamplingParams& params, Rng* rng) {
  if (params.temperature == 0) return Argmax(logits);
  const bool unfiltered = params.top_k == 0 && params.top_p == 1 && params.min_p == 0;
  // Without filters nothing needs sorting: the draw walks over the vocabulary.
  const std::vector<Candidate> candidates =
      unfiltered ? Weigh(logits, params.temperature) : FilterLogits(logits, params);
  double draw = rng->Uniform() * Sum(candidates);
  for (const Candidate& candidate : candidates) {
    draw -= candidate.probability;
    if (draw < 0) return candidate.token;
  }
  // The sum was rounded: the last that is possible at all.
  const auto last =
      std::find_if(candidates.rbegin(), candidates.rend(),
                   [](const Candidate& candidate) { return candidate.probability > 0; });
  return last->token;
}

TokenHistory::TokenHistory(std::span<const int32_t> prompt) {
  for (const int32_t token : prompt) generated_.emplace(token, 0);
}

void TokenHistory::Add(int32_t token) {
  ++generated_[token];
}

bool TokenHistory::Penalize(const SamplingParams& params, std::span<float> logits) const {
  const auto repetition = static_cast<float>(params.repetition_penalty);
  const auto frequency = static_cast<float>(params.frequency_penalty);
  const auto presence = static_cast<float>(params.presence_penalty);
  if (repetition == 1 && frequency == 0 && presence == 0) return false;
  for (const auto& [token, count] : generated_) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / repetition : logit * repetition;
    if (count > 0) logit -= frequency * static_cast<float>(count) + presence;
  }
  return true;
}

TokenLogprob ComputeLogprob(std::span<const float> logits, int32_t token, int64_t top_count) {
  const auto largest = static_cast<double>(FindLargest(logits).largest);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double log_sum = largest + std::log(sum);
  const auto logprob = [&](int32_t id) {
    return static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum;
  };
  TokenLogprob result{.logprob = logprob(token), .top = {}};
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::clamp<int64_t>(top_count, 0, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)];
    const float right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  for (auto id = order.begin(); id != end; ++id) result.top.push_back({*id, logprob(*id)});
  return result;
}

}  // namespace octavo
