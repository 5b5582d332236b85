// What a layer remembers of a sequence. The kinds differ in what they keep; `runtime` decides how
// many there are and when they go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention/attention.h"
#include "quant/kv_cache.h"
#include "tensor/dtype.h"

namespace octavo {

// One layer's memory of one sequence.
class LayerState {
 public:
  virtual ~LayerState() = default;
  // Positions seen.
  virtual int64_t length() const = 0;
  // Whether Truncate can go back to `length`: always to 0 and to what it was before the latest
  // rows.
  virtual bool CanTruncate(int64_t length) const = 0;
  // Forgets everything from position `length` on.
  virtual void Truncate(int64_t length) = 0;
  // An independent copy.
  virtual std::unique_ptr<LayerState> Fork() const = 0;
  virtual int64_t num_bytes() const = 0;
};

// Keys and values: [position, kv head, head_dim], as the codec says; they are rounded when
// appended.
class KvState : public LayerState {
 public:
  KvState(int64_t kv_heads, int64_t head_dim, KvCodec codec);

  // Appends `rows` positions; keys and values are [rows, kv_heads * head_dim], `stride` floats from
  // row to row.
  virtual void Append(const float* keys, const float* values, int64_t rows, int64_t stride) = 0;
  // What is kept: positions begin() .. length() - 1.
  virtual int64_t begin() const = 0;
  virtual KvView view() const = 0;

  int64_t num_bytes() const override { return static_cast<int64_t>(keys_.size() + values_.size()); }

 protected:
  int64_t row_bytes() const { return kv_heads_ * head_dim_ * DTypeBytes(codec_.dtype); }
  void AppendRows(const float* keys, const float* values, int64_t rows, int64_t stride);
  // The kept rows from row `first` of the buffers on.
  KvView ViewFrom(int64_t first) const;

  std::vector<std::byte> keys_;
  std::vector<std::byte> values_;

 private:
  // `scales`: the codec's of these rows; empty for floats.
  void AppendTo(const float* src, int64_t rows, int64_t stride, const std::vector<float>& scales,
                std::vector<std::byte>* dst) const;

  int64_t kv_heads_;
  int64_t head_dim_;
  KvCodec codec_;
};

// Every key and value.
class FullKvState : public KvState {
 public:
  using KvState::KvState;

  void Append(const float* keys, const float* values, int64_t rows, int64_t stride) override;
  int64_t begin() const override { return 0; }
  KvView view() const override { return ViewFrom(0); }

  int64_t length() const override { return length_; }
  bool CanTruncate(int64_t length) const override { return length >= 0 && length <= length_; }
  void Truncate(int64_t length) override;
  std::unique_ptr<LayerState> Fork() const override { return std::make_unique<FullKvState>(*this); }

 private:
  int64_t length_ = 0;
};

// The keys and values of a sliding window: what the rows of the latest Append see, and no more. A
// ring laid out straight, so that kernels read on without wrapping: rows that no later one sees are
// skipped, and moved over once they are as many as those kept. So it holds at most twice the window
// and the rows of one Append, and each row moves once or twice in its life.
class WindowKvState : public KvState {
 public:
  // A row sees `window` >= 1 positions, its own with them.
  WindowKvState(int64_t kv_heads, int64_t head_dim, KvCodec codec, int64_t window);

  void Append(const float* keys, const float* values, int64_t rows, int64_t stride) override;
  int64_t begin() const override { return begin_; }
  KvView view() const override { return ViewFrom(skipped_); }

  int64_t length() const override { return length_; }
  bool CanTruncate(int64_t length) const override;
  void Truncate(int64_t length) override;
  std::unique_ptr<LayerState> Fork() const override {
    return std::make_unique<WindowKvState>(*this);
  }

 private:
  // The first position that a row at `position` sees.
  int64_t FirstSeen(int64_t position) const { return std::max<int64_t>(0, position - window_ + 1); }

  int64_t window_;
  int64_t length_ = 0;
  int64_t begin_ = 0;    // position of the first row kept
  int64_t skipped_ = 0;  // rows of the buffers before it
};

// All layers' memory of one sequence.
struct SequenceState {
  std::vector<std::unique_ptr<LayerState>> layers;

  int64_t length() const { return layers.empty() ? 0 : layers.front()->length(); }
  bool CanTruncate(int64_t length) const {
    return std::all_of(layers.begin(), layers.end(),
                       [&](const auto& layer) { return layer->CanTruncate(length); });
  }
  void Truncate(int64_t length) {
    for (auto& layer : layers) layer->Truncate(length);
  }
  // An independent copy.
  SequenceState Fork() const {
    SequenceState copy;
    for (const auto& layer : layers) copy.layers.push_back(layer->Fork());
    return copy;
  }
};

}  // namespace octavo
