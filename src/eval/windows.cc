#include "eval/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace octavo {

Result<std::vector<Window>> CutWindows(std::span<const TokenId> text,
                                       const WindowOptions& options) {
  const int64_t context = options.bos ? 1 : 0;
  const int64_t text_per_window = options.window - context;
  if (text_per_window < 2 - context || options.window < 2) {
    return InvalidArgument(fmt::format(
        "a window of {} tokens has nothing to score; at least 2 are needed", options.window));
  }
  // With BOS a window of n holds n - 1 tokens of text, so the usual stride (the window) becomes
  // that.
  const int64_t stride = std::min(options.stride, text_per_window);
  if (options.stride < 1 || options.stride > options.window) {
    return InvalidArgument(
        fmt::format("the stride is {}; 1 to the window's {} is expected, or text would be skipped",
                    options.stride, options.window));
  }
  const int64_t length = std::ssize(text);
  if (length + context < 2)
    return InvalidArgument(
        fmt::format("the text has {} tokens; there is nothing to score", length));

  std::vector<Window> windows;
  int64_t scored_until = 0;  // text tokens that some window has covered
  for (int64_t begin = 0; begin == 0 || begin + text_per_window <= length; begin += stride) {
    if (options.max_windows > 0 && std::ssize(windows) == options.max_windows) break;
    const int64_t end = std::min(begin + text_per_window, length);
    Window window;
    if (options.bos) window.tokens.push_back(*options.bos);
    window.tokens.insert(window.tokens.end(), text.begin() + begin, text.begin() + end);
    window.first_scored = std::max<int64_t>(1, context + scored_until - begin);
    windows.push_back(std::move(window));
    scored_until = end;
  }
  return windows;
}

WindowForward::WindowForward(const Model& model, const Context& context)
    : model_(model), forward_(model, context) {}

Status WindowForward::Run(std::span<const TokenId> tokens) {
  if (std::ssize(tokens) > model_.spec.max_positions) {
    return InvalidArgument(
        fmt::format("a window of {} tokens is longer than the model's {} positions", tokens.size(),
                    model_.spec.max_positions));
  }
  SequenceState state = MakeSequenceState(model_, DType::kF32);
  batch_ = Batch();
  for (size_t i = 0; i < tokens.size(); ++i)
    batch_.Add(tokens[i], 0, static_cast<int64_t>(i), false);
  hidden_.resize(tokens.size() * static_cast<size_t>(model_.spec.hidden_size));
  OCTAVO_RETURN_IF_ERROR(forward_.Embed(batch_, hidden_));
  OCTAVO_RETURN_IF_ERROR(CheckFinite(hidden_, model_.names.embedding));
  SequenceState* states[] = {&state};
  for (int64_t block = 0; block < model_.spec.num_layers; ++block) {
    forward_.Block(block, batch_, states, hidden_);
    OCTAVO_RETURN_IF_ERROR(CheckFinite(hidden_, model_.blocks[static_cast<size_t>(block)].name));
  }
  return OkStatus();
}

std::span<const float> WindowForward::Logits(int64_t first, int64_t count) {
  std::fill(batch_.want_logits.begin(), batch_.want_logits.end(), uint8_t{0});
  std::fill_n(batch_.want_logits.begin() + first, count, uint8_t{1});
  logits_.resize(static_cast<size_t>(count * vocab_size()));
  forward_.Head(batch_, hidden_, logits_);
  return logits_;
}

Status CheckFinite(std::span<const float> hidden, std::string_view module) {
  // Sums of finite numbers this small do not overflow, and NaN or infinity stays.
  double sum = 0;
  for (const float value : hidden) sum += static_cast<double>(std::abs(value));
  if (std::isfinite(sum)) return OkStatus();
  return InvalidArgument(
      fmt::format("{} computes NaN or infinite values; the checkpoint is damaged there, or "
                  "something of it was quantized beyond its range",
                  module));
}

double LogSumExp(std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += static_cast<double>(std::exp(logit - largest));
  return static_cast<double>(largest) + std::log(sum);
}

}  // namespace octavo
