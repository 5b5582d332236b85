// Requests side by side: each gets, to the last bit, what it gets alone.
#include "runtime/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "runtime/load.h"
#include "runtime/states.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TestContext;

std::filesystem::path Stories() {
  return std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
}
std::filesystem::path W8A8() {
  return testing::TestData("checkpoints/odd-w8a8");
}

// A model, and requests that go to it together or alone. Results by number of the request.
class Bench {
 public:
  explicit Bench(const std::filesystem::path& folder, int threads = 2)
      : context_(threads), loaded_(LoadModel(folder, {}, context_.context).value()) {}

  const Model& model() const { return loaded_->model(); }
  ModelPass* pass() { return &pass_; }
  Context& context() { return context_.context; }

  // Tokens of no meaning, other ones for each request.
  Request MakeRequest(int64_t index, int64_t prompt_tokens, int64_t max_tokens) {
    states_.push_back(MakeSequenceState(model(), DType::kBF16));
    Request request{.state = &states_.back(),
                    .options = {.sampling = {.temperature = 0.8,
                                             .top_p = 0.95,
                                             .repetition_penalty = 1.1,
                                             .seed = static_cast<uint64_t>(index)},
                                .max_tokens = max_tokens,
                                .want_logprobs = true}};
    for (int64_t i = 0; i < prompt_tokens; ++i) {
      request.prompt.push_back(
          static_cast<TokenId>((7 + 31 * index + 17 * i) % model().spec.vocab_size));
    }
    return request;
  }

  GenerateResult Alone(Request request) {
    Scheduler scheduler(&pass_);
    EXPECT_TRUE(scheduler.Add(std::move(request)).ok());
    std::vector<Scheduler::Finished> finished;
    while (finished.empty()) finished = scheduler.Step();
    EXPECT_TRUE(finished[0].result.ok());
    return finished[0].result.ok() ? *finished[0].result : GenerateResult();
  }

 private:
  TestContext context_;
  std::unique_ptr<LoadedModel> loaded_;
  ModelPass pass_{loaded_->model(), context_.context};
  std::deque<SequenceState> states_;  // borrowed by requests: they do not move
};

void ExpectSame(const GenerateResult& a, const GenerateResult& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
  for (size_t i = 0; i < a.logprobs.size(); ++i)
    EXPECT_EQ(a.logprobs[i].logprob, b.logprobs[i].logprob) << "token " << i;
}

// 40 requests of many lengths, joining at different steps, more than fit into one pass.
void RunTogetherAndAlone(const std::filesystem::path& folder) {
  Bench bench(folder);
  constexpr int64_t kRequests = 40;
  const auto make = [&](int64_t i) {
    return bench.MakeRequest(i, 1 + 13 * i % 60, 3 + 5 * i % 11);
  };
  std::map<Scheduler::RequestId, GenerateResult> together;
  Scheduler scheduler(bench.pass());
  int64_t added = 0;
  while (added < kRequests || !scheduler.idle()) {
    for (int64_t i = 0; i < 9 && added < kRequests; ++i, ++added)
      EXPECT_EQ(scheduler.Add(make(added)).value(), added);
    for (Scheduler::Finished& finished : scheduler.Step()) {
      ASSERT_OK(finished.result);
      EXPECT_TRUE(together.emplace(finished.id, *std::move(finished.result)).second);
    }
  }
  ASSERT_EQ(std::ssize(together), kRequests);
  for (int64_t i = 0; i < kRequests; ++i) {
    SCOPED_TRACE(i);
    ExpectSame(together[i], bench.Alone(make(i)));
  }
}

TEST(Scheduler, FloatModelsGiveEachRequestWhatItGetsAlone) {
  RunTogetherAndAlone(Stories());
}

TEST(Scheduler, QuantizedModelsGiveEachRequestWhatItGetsAlone) {
  RunTogetherAndAlone(W8A8());
}

TEST(Scheduler, ALongPromptDoesNotHoldUpOthers) {
  Bench bench(Stories());
  Scheduler scheduler(bench.pass());
  const auto quick = scheduler.Add(bench.MakeRequest(1, 4, 3)).value();
  ASSERT_OK(scheduler.Add(bench.MakeRequest(2, 500, 3)));
  const auto last = scheduler.Add(bench.MakeRequest(3, 500, 3)).value();
  std::vector<Scheduler::RequestId> order;
  while (!scheduler.idle()) {
    for (const auto& finished : scheduler.Step()) order.push_back(finished.id);
  }
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order.front(), quick);
  EXPECT_EQ(order.back(), last);
}

TEST(Scheduler, WhatIsRememberedIsNotComputedAgain) {
  Bench bench(Stories());
  Request whole = bench.MakeRequest(5, 50, 8);
  const GenerateResult expected = bench.Alone(whole);
  whole.state->Truncate(30);
  const GenerateResult found = bench.Alone(whole);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.cached_tokens, 30);
  EXPECT_EQ(whole.state->length(), 57) << "the last token is not fed";
}

TEST(Scheduler, CancelledRequestsEndAndOthersGoOn) {
  Bench bench(Stories());
  Scheduler scheduler(bench.pass());
  const auto stopped = scheduler.Add(bench.MakeRequest(1, 4, 50)).value();
  const auto other = scheduler.Add(bench.MakeRequest(2, 4, 6)).value();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scheduler.Step().empty());
  scheduler.Cancel(stopped);
  scheduler.Cancel(77);
  std::map<Scheduler::RequestId, GenerateResult> results;
  while (!scheduler.idle()) {
    for (auto& finished : scheduler.Step()) results[finished.id] = *std::move(finished.result);
  }
  EXPECT_EQ(results[stopped].finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(results[stopped].tokens.size(), 3U);
  EXPECT_EQ(results[other].finish_reason, FinishReason::kLength);
}

TEST(Scheduler, BadRequestsAreNamed) {
  Bench bench(Stories());
  Scheduler scheduler(bench.pass());
  const auto error = [&](Request request) {
    const auto id = scheduler.Add(std::move(request));
    EXPECT_FALSE(id.ok());
    return id.ok() ? "" : std::string(id.status().message());
  };
  EXPECT_NE(error(bench.MakeRequest(1, 0, 5)).find("no token"), std::string::npos);
  EXPECT_NE(error(bench.MakeRequest(1, 513, 5)).find("shorten"), std::string::npos);
  EXPECT_NE(error(bench.MakeRequest(1, 5, 0)).find("max-tokens is 0"), std::string::npos);
  Request outside = bench.MakeRequest(1, 5, 5);
  outside.prompt[2] = -1;
  EXPECT_NE(error(outside).find("token -1 is outside"), std::string::npos);
  Request cold = bench.MakeRequest(1, 5, 5);
  cold.options.sampling.temperature = -1;
  EXPECT_NE(error(cold).find("temperature is -1"), std::string::npos);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_TRUE(scheduler.Step().empty());
}

}  // namespace
}  // namespace octavo
