#include "model/state.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tensor/convert.h"

namespace octavo {
namespace {

// Two kv heads of two elements; rows of keys and values lie six floats apart, as in a fused q/k/v
// row.
constexpr int64_t kStride = 6;
const std::vector<float> kRows = {0, 0, 1.001F, 2, 3, 4, 0, 0, 5, 6, 7, 8};

FullKvState Filled(DType dtype) {
  FullKvState state(2, 2, dtype);
  state.Append(kRows.data() + 2, kRows.data() + 2, 2, kStride);
  return state;
}

TEST(FullKvState, KeepsRowsAsTheyComeInFloat32) {
  const FullKvState state = Filled(DType::kF32);
  EXPECT_EQ(state.length(), 2);
  const KvView view = state.view();
  const auto* keys = static_cast<const float*>(view.keys);
  EXPECT_EQ(std::vector<float>(keys, keys + 8), (std::vector<float>{1.001F, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(view.token_stride, 4);
  EXPECT_EQ(view.head_stride, 2);
}

TEST(FullKvState, RoundsToBfloat16WhenAppended) {
  const FullKvState state = Filled(DType::kBF16);
  const auto* keys = static_cast<const uint16_t*>(state.view().keys);
  EXPECT_EQ(FloatFromBf16(keys[0]), RoundToBf16(1.001F));
  EXPECT_EQ(FloatFromBf16(keys[7]), 8);
  EXPECT_EQ(state.num_bytes(), 2 * 8 * 2);
}

TEST(FullKvState, TruncateForgetsAndAppendGoesOn) {
  FullKvState state = Filled(DType::kF32);
  state.Truncate(1);
  EXPECT_EQ(state.length(), 1);
  state.Append(kRows.data() + 2, kRows.data() + 2, 1, kStride);
  const auto* values = static_cast<const float*>(state.view().values);
  EXPECT_EQ(std::vector<float>(values, values + 8),
            (std::vector<float>{1.001F, 2, 3, 4, 1.001F, 2, 3, 4}));
}

TEST(FullKvState, AForkIsIndependent) {
  FullKvState state = Filled(DType::kF32);
  const std::unique_ptr<LayerState> fork = state.Fork();
  state.Truncate(0);
  EXPECT_EQ(fork->length(), 2);
  EXPECT_EQ(state.length(), 0);
}

}  // namespace
}  // namespace octavo
