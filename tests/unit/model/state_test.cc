#include "model/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

// Two kv heads with scales of their own.
FullKvState FilledWithCodes(DType dtype) {
  FullKvState state(2, 2, KvCodec(dtype, {1, 2}, {0.5F, 4}));
  state.Append(kRows.data() + 2, kRows.data() + 2, 2, kStride);
  return state;
}

TEST(FullKvState, RoundsToCodesWithTheScaleOfTheHead) {
  const FullKvState state = FilledWithCodes(DType::kI8);
  const KvView view = state.view();
  const auto* keys = static_cast<const int8_t*>(view.keys);
  const auto* values = static_cast<const int8_t*>(view.values);
  // {1.001, 2 | 3, 4}, {5, 6 | 7, 8}; ties to even.
  EXPECT_EQ(std::vector<int8_t>(keys, keys + 8), (std::vector<int8_t>{1, 2, 2, 2, 5, 6, 4, 4}));
  EXPECT_EQ(std::vector<int8_t>(values, values + 8),
            (std::vector<int8_t>{2, 4, 1, 1, 10, 12, 2, 2}));
  EXPECT_EQ(view.key_scales[1], 2);
  EXPECT_EQ(view.value_scales[0], 0.5F);
}

TEST(FullKvState, CodesTakeAByteEach) {
  for (const DType dtype : {DType::kF8E4M3, DType::kI8}) {
    EXPECT_EQ(FilledWithCodes(dtype).num_bytes() * 2, Filled(DType::kBF16).num_bytes());
    EXPECT_EQ(FilledWithCodes(dtype).num_bytes() * 4, Filled(DType::kF32).num_bytes());
  }
}

TEST(FullKvState, CodesSaturateAndNanStaysWhereThereIsOne) {
  const std::vector<float> rows = {1e6F, -1e6F, std::nanf(""), 0};
  for (const DType dtype : {DType::kF8E4M3, DType::kI8}) {
    FullKvState state(1, 4, KvCodec(dtype, {1}, {1}));
    state.Append(rows.data(), rows.data(), 1, 4);
    const auto* codes = static_cast<const uint8_t*>(state.view().keys);
    const std::vector<uint8_t> expected = dtype == DType::kI8
                                              ? std::vector<uint8_t>{127, 0x80, 0, 0}
                                              : std::vector<uint8_t>{0x7E, 0xFE, 0x7F, 0};
    EXPECT_EQ(std::vector<uint8_t>(codes, codes + 4), expected);
  }
}

TEST(FullKvState, AForkOfCodesKeepsTheScales) {
  auto fork = FilledWithCodes(DType::kI8).Fork();  // of a state that is gone
  EXPECT_EQ(static_cast<KvState*>(fork.get())->view().key_scales[1], 2);
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

// Rows of one kv head of one element: the key of position p is p, its value -p.
void AppendPositions(KvState* state, int64_t first, int64_t rows) {
  std::vector<float> keys;
  std::vector<float> values;
  for (int64_t p = first; p < first + rows; ++p) {
    keys.push_back(static_cast<float>(p));
    values.push_back(static_cast<float>(-p));
  }
  state->Append(keys.data(), values.data(), rows, 1);
}

void ExpectPositions(const KvState& state) {
  const KvView view = state.view();
  for (int64_t p = state.begin(); p < state.length(); ++p) {
    ASSERT_EQ(static_cast<const float*>(view.keys)[p - state.begin()], static_cast<float>(p));
    ASSERT_EQ(static_cast<const float*>(view.values)[p - state.begin()], static_cast<float>(-p));
  }
}

TEST(WindowKvState, KeepsWhatTheLatestRowsSee) {
  WindowKvState state(1, 1, DType::kF32, 4);
  int64_t length = 0;
  for (const int64_t rows : {1, 2, 1, 5, 1, 1, 1, 1, 9, 3, 1}) {
    AppendPositions(&state, length, rows);
    EXPECT_EQ(state.length(), length + rows);
    EXPECT_EQ(state.begin(), std::max<int64_t>(0, length - 3)) << "the first new row sees 3 more";
    ExpectPositions(state);
    length += rows;
  }
}

TEST(WindowKvState, MemoryStaysBounded) {
  WindowKvState state(1, 1, DType::kF32, 100);
  int64_t most = 0;
  for (int64_t p = 0; p < 5000; ++p) {
    AppendPositions(&state, p, 1);
    most = std::max(most, state.num_bytes());
  }
  EXPECT_EQ(state.length(), 5000);
  EXPECT_LE(most, 2 * 4 * (2 * 100 + 1));
  ExpectPositions(state);
}

TEST(WindowKvState, GoesBackBeforeTheLatestRowsAndToTheStart) {
  WindowKvState state(1, 1, DType::kF32, 4);
  AppendPositions(&state, 0, 20);
  AppendPositions(&state, 20, 6);
  EXPECT_TRUE(state.CanTruncate(26));
  EXPECT_TRUE(state.CanTruncate(20));
  EXPECT_FALSE(state.CanTruncate(19)) << "a row at 19 sees 16, which is gone";
  EXPECT_FALSE(state.CanTruncate(27));
  const std::unique_ptr<LayerState> fork = state.Fork();
  state.Truncate(20);
  EXPECT_EQ(state.length(), 20);
  AppendPositions(&state, 20, 1);
  EXPECT_EQ(state.begin(), 17);
  ExpectPositions(state);
  state.Truncate(0);
  EXPECT_EQ(state.length(), 0);
  AppendPositions(&state, 0, 2);
  ExpectPositions(state);
  EXPECT_EQ(fork->length(), 26);
}

TEST(SequenceState, CanGoBackAsFarAsEveryLayerCan) {
  SequenceState sequence;
  sequence.layers.push_back(std::make_unique<FullKvState>(1, 1, DType::kF32));
  sequence.layers.push_back(std::make_unique<WindowKvState>(1, 1, DType::kF32, 2));
  for (const auto& layer : sequence.layers) {
    AppendPositions(static_cast<KvState*>(layer.get()), 0, 8);
    AppendPositions(static_cast<KvState*>(layer.get()), 8, 1);
  }
  EXPECT_TRUE(sequence.CanTruncate(8));
  EXPECT_FALSE(sequence.CanTruncate(5));
  EXPECT_TRUE(sequence.CanTruncate(0));
}

}  // namespace
}  // namespace octavo
