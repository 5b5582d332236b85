#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/architecture.h"

namespace octavo {
namespace {

// A Llama of head dimension 16 with further members in its config.
Result<ModelSpec> Read(const std::string& members) {
  const std::string text = R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 96,
      "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
      "num_attention_heads": 4, "max_position_embeddings": 1024)" +
                           members + "}";
  const Value config = ParseJson(text, "config").value();
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config));
  return architecture->parse_config(config);
}

TEST(RopeReader, BothSpellingsOfEveryKind) {
  const struct {
    const char* members;
    RopeScaling scaling;
    int64_t max_positions;
  } cases[] = {
      {"", RopeScaling::kNone, 1024},
      {R"(, "rope_scaling": null)", RopeScaling::kNone, 1024},
      {R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5})", RopeScaling::kNone,
       1024},
      {R"(, "rope_scaling": {"type": "linear", "factor": 4})", RopeScaling::kLinear, 4096},
      {R"(, "rope_parameters": {"rope_type": "dynamic", "factor": 2.5})", RopeScaling::kDynamic,
       2560},
      {R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
           "high_freq_factor": 4, "original_max_position_embeddings": 128})",
       RopeScaling::kLlama3, 1024},
      {R"(, "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 512})",
       RopeScaling::kYarn, 2048},
      {R"(, "rope_scaling": {"type": "yarn", "factor": 2, "original_max_position_embeddings": 256})",
       RopeScaling::kYarn, 1024},
      {R"(, "rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 256})",
       RopeScaling::kYarn, 1024},
      // transformers 5 takes the old spelling where a file has both.
      {R"(, "rope_parameters": {"rope_type": "default"}, "rope_scaling": {"type": "linear",
           "factor": 2})",
       RopeScaling::kLinear, 2048},
  };
  for (const auto& [members, scaling, max_positions] : cases) {
    const auto spec = Read(members);
    ASSERT_TRUE(spec.ok()) << members << spec.status().message();
    EXPECT_EQ(spec->rope.scaling, scaling) << members;
    EXPECT_EQ(spec->max_positions, max_positions) << members;
  }
  EXPECT_EQ(Read(R"(, "rope_theta": 7, "rope_scaling": {"type": "default"})")->rope.theta, 7);
  EXPECT_EQ(Read(R"(, "rope_theta": 7, "rope_parameters": {"rope_theta": 8})")->rope.theta, 8);
}

TEST(RopeReader, WhatIsWrongOrNotHereIsNamed) {
  const struct {
    const char* members;
    std::vector<const char*> parts;
  } cases[] = {
      {R"(, "rope_theta": 0)", {"rope_theta"}},
      {R"(, "rope_theta": -1e300)", {"rope_theta"}},
      {R"(, "rope_theta": "big")", {"rope_theta"}},
      {R"(, "rope_scaling": 4)", {"rope_scaling", "object"}},
      {R"(, "rope_scaling": {"type": "ntk"})", {"ntk", "not supported", "yarn"}},
      {R"(, "rope_scaling": {"type": "longrope"})", {"short_factor", "list"}},
      {R"(, "rope_scaling": {"type": "longrope", "short_factor": [1, 2]})", {"short_factor", "8"}},
      {R"(, "rope_scaling": {"type": "lineer", "factor": 2})", {"did you mean", "linear"}},
      {R"(, "rope_scaling": {"type": "linear"})", {"rope_scaling", "factor", "missing"}},
      {R"(, "rope_scaling": {"type": "linear", "factor": 0.5})", {"factor", "0.5"}},
      {R"(, "rope_scaling": {"type": "linear", "factor": 1e999})", {"factor"}},
      {R"(, "rope_scaling": {"type": "linear", "factor": [2]})", {"factor"}},
      {R"(, "rope_scaling": {"type": "llama3", "factor": 8})", {"low_freq_factor", "missing"}},
      {R"(, "rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4,
           "high_freq_factor": 4})",
       {"high_freq_factor"}},
      {R"(, "rope_scaling": {"type": "yarn", "factor": 2, "original_max_position_embeddings": 0})",
       {"original_max_position_embeddings"}},
      {R"(, "rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": 0})", {"beta_fast"}},
      {R"(, "rope_theta": 1, "rope_scaling": {"type": "yarn", "factor": 2})", {"rope_theta"}},
      {R"(, "rope_scaling": {"type": "yarn", "factor": 2, "truncate": 1})", {"truncate"}},
      {R"(, "head_dim": 2, "rope_scaling": {"type": "dynamic", "factor": 2})", {"head dimension"}},
      {R"(, "rope_parameters": {"full_attention": {"rope_theta": 1}})", {"sliding_attention"}},
      {R"(, "rope_parameters": {"partial_rotary_factor": 0.5})", {"partial_rotary_factor"}},
  };
  for (const auto& [members, parts] : cases) {
    Result<Value> json = ParseJson("{\"x\": 0" + std::string(members) + "}", "config");
    if (!json.ok()) continue;  // 1e999 is refused before
    const auto spec = Read(members);
    ASSERT_FALSE(spec.ok()) << members;
    for (const char* part : parts) {
      EXPECT_NE(spec.status().message().find(part), std::string::npos)
          << part << " is not in: " << spec.status().message();
    }
  }
}

TEST(Rope, LinearDividesAll) {
  const auto plain = RopeFrequencies({.theta = 100}, 8, 1);
  const auto linear =
      RopeFrequencies({.theta = 100, .scaling = RopeScaling::kLinear, .factor = 4}, 8, 1);
  EXPECT_EQ(plain[0], 1);
  EXPECT_FLOAT_EQ(plain[2], 0.1F);
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(linear[i], plain[i] / 4);
}

TEST(Rope, DynamicGrowsWithTheLengthBeyondWhatWasTrained) {
  const RopeSpec rope{.scaling = RopeScaling::kDynamic, .factor = 2, .trained_positions = 16};
  EXPECT_TRUE(rope.depends_on_length());
  const auto plain = RopeFrequencies({}, 16, 1);
  EXPECT_EQ(RopeFrequencies(rope, 16, 16), plain);
  const auto longer = RopeFrequencies(rope, 16, 24);
  EXPECT_EQ(longer[0], 1);
  // theta (2 * 24 / 16 - 1) ^ (16 / 14), at i = 1: to the power of -1 / 8.
  EXPECT_FLOAT_EQ(longer[1], plain[1] * std::pow(2.0F, -16.0F / 14 / 8));
}

TEST(Rope, YarnKeepsFastAndDividesSlowDimensions) {
  RopeSpec rope{.theta = 100, .scaling = RopeScaling::kYarn, .factor = 4, .trained_positions = 32};
  const auto plain = RopeFrequencies({.theta = 100}, 16, 1);
  const auto yarn = RopeFrequencies(rope, 16, 1);
  EXPECT_FLOAT_EQ(yarn[0], plain[0]);
  EXPECT_FLOAT_EQ(yarn[7], plain[7] / 4);
  rope.round_ramp = false;
  EXPECT_NE(RopeFrequencies(rope, 16, 1), yarn);
}

TEST(Rope, Llama3HasThreeBands) {
  const RopeSpec rope{.theta = 500,
                      .scaling = RopeScaling::kLlama3,
                      .factor = 8,
                      .trained_positions = 32,
                      .low_frequency_factor = 1,
                      .high_frequency_factor = 4};
  const auto plain = RopeFrequencies({.theta = 500}, 16, 1);
  const auto llama3 = RopeFrequencies(rope, 16, 1);
  EXPECT_EQ(llama3[0], plain[0]);  // 5.1 turns
  EXPECT_LT(llama3[1], plain[1]);  // 2.3
  EXPECT_GT(llama3[1], plain[1] / 8);
  EXPECT_EQ(llama3[7], plain[7] / 8);
}

}  // namespace
}  // namespace octavo
