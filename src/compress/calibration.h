// The calibration tokens' hidden states, carried from block to block.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/hidden_states.h"
#include "model/forward.h"
#include "model/graph.h"
#include "runtime/sample_parts.h"
#include "text/tokenizer.h"

namespace octavo {

// The samples, cut into parts that are run in one pass, and their hidden states.
class Calibration {
 public:
  // No samples: every pass does nothing. The hidden states are those of no block yet: Embed, or
  // Load what an earlier run left.
  Calibration(const std::vector<std::vector<TokenId>>& samples, HiddenStates hidden);

  // Looks the samples up in the model's embedding: the input of block 0.
  Status Embed(const Model& model, const Context& context);
  // Goes on with the input of `block` that an earlier run left.
  Status Load(int64_t block);

  // Runs block `index` of the forward's model over all samples, for a tap alone: `until` it.
  Status Observe(Forward* forward, const Model& model, int64_t index, const Context& context,
                 Forward::Until until = Forward::Until::kLastTap);
  // After the last block: the final norm, whose output the tap gets as the head's input.
  Status ObserveHead(const Model& model, const Tap& tap, const Context& context);
  // Runs it and makes what comes out the input of the next block, on disk too.
  Status FeedOn(Forward* forward, const Model& model, int64_t index, const Context& context);
  // The inputs of earlier blocks are not needed any more.
  Status RemoveOthers() const { return hidden_.RemoveOthers(); }

  int64_t tokens() const { return hidden_.tokens(); }
  // The rows of the pass that a tap is called from.
  const Batch& running_batch() const { return *running_; }

 private:
  // The part's hidden states, [rows, width], in scratch_.
  Result<std::span<float>> ReadPart(const SamplePart& part, const Model& model);
  void RunPart(Forward* forward, const Model& model, int64_t index, const SamplePart& part,
               std::span<float> hidden, Forward::Until until);

  std::vector<SamplePart> parts_;
  HiddenStates hidden_;
  std::vector<float> scratch_;
  const Batch* running_ = nullptr;
};

// Calls `visit` with the rows of each sample in turn, until it fails. sequence [x.m] tells the
// samples apart.
Status ForEachSample(const Rows& x, std::span<const int32_t> sequence,
                     const std::function<Status(const Rows& sample)>& visit);

}  // namespace octavo
