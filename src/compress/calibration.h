// The calibration tokens' hidden states, carried from block to block.
#pragma once

#include <cstdint>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/forward.h"
#include "model/graph.h"
#include "text/tokenizer.h"

namespace octavo {

// Holds hidden [tokens, hidden_size] float32 of all samples: together with one block's weights and
// statistics, all that calibration keeps.
class Calibration {
 public:
  // Looks the samples up in the model's embedding. No samples: every pass does nothing.
  static Result<Calibration> Embed(const Model& model,
                                   const std::vector<std::vector<TokenId>>& samples,
                                   const Context& context);

  // Runs block `index` of the forward's model over all samples. Keep: what comes out is what the
  // next block gets; else it is dropped (the tap saw it).
  enum class Output { kKeep, kDrop };
  Status RunBlock(Forward* forward, const Model& model, int64_t index, Output output,
                  const Context& context);

  int64_t tokens() const { return tokens_; }

 private:
  struct Part {  // some samples, run in one pass
    Batch batch;
    int32_t sequences = 0;
    std::vector<float> hidden;
  };
  std::vector<Part> parts_;
  int64_t tokens_ = 0;
  std::vector<float> scratch_;
};

}  // namespace octavo
