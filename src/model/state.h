// What a layer remembers of a sequence. The kinds differ in what they keep; `runtime` decides how
// many there are and when they go.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention/attention.h"
#include "tensor/dtype.h"

namespace octavo {

// One layer's memory of one sequence.
class LayerState {
 public:
  virtual ~LayerState() = default;
  // Positions remembered.
  virtual int64_t length() const = 0;
  // Forgets everything from position `length` on.
  virtual void Truncate(int64_t length) = 0;
  // An independent copy.
  virtual std::unique_ptr<LayerState> Fork() const = 0;
  virtual int64_t num_bytes() const = 0;
};

// Every key and value: [position, kv head, head_dim], F32 or BF16 (rounded to nearest even when
// appended).
class FullKvState : public LayerState {
 public:
  FullKvState(int64_t kv_heads, int64_t head_dim, DType dtype);

  // Appends `rows` positions; keys and values are [rows, kv_heads * head_dim], `stride` floats from
  // row to row.
  void Append(const float* keys, const float* values, int64_t rows, int64_t stride);
  KvView view() const;

  int64_t length() const override { return length_; }
  void Truncate(int64_t length) override;
  std::unique_ptr<LayerState> Fork() const override { return std::make_unique<FullKvState>(*this); }
  int64_t num_bytes() const override { return static_cast<int64_t>(keys_.size() + values_.size()); }

 private:
  int64_t kv_heads_;
  int64_t head_dim_;
  DType dtype_;
  int64_t length_ = 0;
  std::vector<std::byte> keys_;
  std::vector<std::byte> values_;
};

// All layers' memory of one sequence.
struct SequenceState {
  std::vector<std::unique_ptr<LayerState>> layers;

  int64_t length() const { return layers.empty() ? 0 : layers.front()->length(); }
  void Truncate(int64_t length) {
    for (auto& layer : layers) layer->Truncate(length);
  }
};

}  // namespace octavo
