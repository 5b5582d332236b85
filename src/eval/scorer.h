// Log-likelihoods of many continuations: computed together, and what several requests begin with
// computed once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "eval/token_requests.h"
#include "model/graph.h"

namespace octavo {

struct Loglikelihood {
  double sum = 0;         // nats, over the continuation's tokens
  bool is_greedy = true;  // whether each of them is the most likely one
};

struct ScorerOptions {
  int64_t rows = 512;  // of a pass
  // Tokens from which on a common beginning is worth a sequence of its own.
  int64_t min_shared = 8;
  // Of the keys and values that the sequences of a pass may hold.
  int64_t state_bytes = int64_t{1} << 29;
};

class Scorer {
 public:
  // `model` and `context` outlive the object.
  Scorer(const Model& model, const Context& context, const ScorerOptions& options = {});
  ~Scorer();

  // In the order of the requests; each has at most as many tokens as the model has positions.
  // InvalidArgument names the block whose outputs are not finite.
  Result<std::vector<Loglikelihood>> Score(std::span<const FedTokens> requests);
  // Tokens that ran through the model so far: fewer than were asked for where beginnings are
  // shared.
  int64_t tokens_computed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
