// Rotary embedding's frequencies, plain or stretched to positions beyond those trained on.
#pragma once

#include <cstdint>
#include <vector>

namespace octavo {

// How the frequencies are stretched; the formulas are in rope.cc.
enum class RopeScaling : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongRope };

struct RopeSpec {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;                 // how many times as far it reaches: all kinds but kNone
  int64_t trained_positions = 0;     // before the stretching: kDynamic, kLlama3, kYarn
  double low_frequency_factor = 1;   // kLlama3: turns within trained_positions below which all is
  double high_frequency_factor = 4;  // divided, above which nothing is
  double beta_fast = 32;             // kYarn: likewise, above which nothing is divided
  double beta_slow = 1;              // and below which all is
  bool round_ramp = true;  // kYarn: the ramp between the two begins and ends at whole dimensions
  double attention_factor = 1;  // cos and sin are multiplied by it
  // kLongRope: what each frequency is divided by, in sequences of up to trained_positions and in
  // longer ones.
  std::vector<float> short_factors = {};
  std::vector<float> long_factors = {};

  friend bool operator==(const RopeSpec&, const RopeSpec&) = default;

  // Whether the frequencies change as a sequence grows. Keys in a cache keep those of their step,
  // as in transformers, so that results depend on how a prompt is cut.
  bool depends_on_length() const {
    return scaling == RopeScaling::kDynamic || scaling == RopeScaling::kLongRope;
  }
};

// The angle of pair i at position p is p * frequencies[i]: [rotary_dim / 2], for a sequence of
// `length` tokens. In float32, as transformers computes them. rotary_dim, the rotated part of a
// head, is even and, for kDynamic, at least 4.
std::vector<float> RopeFrequencies(const RopeSpec& rope, int64_t rotary_dim, int64_t length);

}  // namespace octavo
