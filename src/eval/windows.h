// A long text in windows: how it is cut, and how a model computes the logits of one window.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/forward.h"
#include "runtime/states.h"
#include "text/tokenizer.h"

namespace octavo {

struct WindowOptions {
  int64_t window = 512;  // tokens a window, BOS included
  int64_t stride =
      512;  // text tokens from one window's start to the next; at most what a window holds
  int64_t max_windows = 0;                    // 0: all
  std::optional<TokenId> bos = std::nullopt;  // put in front of every window
};

// The tokens of a window, and from which on they are scored: those before are context that an
// earlier window scored (or have none).
struct Window {
  std::vector<TokenId> tokens;
  int64_t first_scored = 1;
};

// Only whole windows are taken (a shorter rest is dropped), unless the text is shorter than one.
// InvalidArgument when an option makes no sense or fewer than two tokens are there.
Result<std::vector<Window>> CutWindows(std::span<const TokenId> text, const WindowOptions& options);

// Runs whole windows through a model with a float32 cache; logits are computed in pieces of rows,
// since a window's would fill 100 MB.
class WindowForward {
 public:
  WindowForward(const Model& model, const Context& context);

  // Runs the blocks over a new window. InvalidArgument names the first block whose output is not
  // finite.
  Status Run(std::span<const TokenId> tokens);
  // Logits [count, vocab] of rows [first, first + count) of the window that ran last.
  std::span<const float> Logits(int64_t first, int64_t count);

  int64_t vocab_size() const { return model_.spec.vocab_size; }

 private:
  const Model& model_;
  Forward forward_;
  Batch batch_;
  std::vector<float> hidden_;
  std::vector<float> logits_;
};

// Rows of logits computed at a time.
inline constexpr int64_t kLogitRows = 64;

// InvalidArgument, naming the module, where one of its outputs is NaN or infinite.
Status CheckFinite(std::span<const float> hidden, std::string_view module);

// log sum_j exp(logits[j]), summed in double.
double LogSumExp(std::span<const float> logits);

}  // namespace octavo
