#include "inspect/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/inspect/inspected_checkpoint.h"

namespace octavo {
namespace {

using testing::InspectedCheckpoint;
using testing::TensorMap;

constexpr char kLayer[] = "model.layers.0.self_attn.q_proj";

std::vector<std::string> Found(const Inspection& inspection, ProblemKind kind) {
  std::vector<std::string> where;
  for (const Problem& problem : inspection.problems) {
    if (problem.kind == kind) where.push_back(problem.where);
  }
  return where;
}

TEST(Diagnosis, WhatTheLibrarySavedHasNoProblem) {
  for (const std::string name :
       {"llama-w8a8-static-asym", "llama-w4a16-asym", "llama-fp8-dynamic-kv", "llama-attention-fp8",
        "llama-mixed", "llama-spin-online-random", "old-zero-point-unpacked"}) {
    const Inspection inspection = InspectedCheckpoint(name).Inspect();
    for (const Problem& problem : inspection.problems)
      ADD_FAILURE() << name << ": " << problem.where << ": " << problem.text;
  }
}

TEST(Diagnosis, EverythingIsFoundNotOnlyTheFirst) {
  const InspectedCheckpoint checkpoint("llama-w8a8", [](TensorMap* tensors) {
    const std::string layer = kLayer;
    tensors->erase(layer + ".weight_scale");
    tensors->erase("model.norm.weight");
    (*tensors)[layer + ".weight_packed"] = Tensor::Zeros(DType::kI32, {2});
    (*tensors)["model.layers.1.mlp.up_proj.weight"] = Tensor::Zeros(DType::kI8, {3, 5});
    (*tensors)["model.layers.1.mlp.down_proj.weight"] = Tensor::Zeros(DType::kU8, {256, 384});
    (*tensors)["model.layers.1.input_layernorm.weight"] = Tensor::Zeros(DType::kF32, {7});
    (*tensors)["model.vision.patch.weight"] = Tensor::Zeros(DType::kF32, {1});
    (*tensors)["lm_head"] = Tensor::Zeros(DType::kF32, {1});  // a name of one word, a module's
  });
  const Inspection inspection = checkpoint.Inspect();
  EXPECT_EQ(Found(inspection, ProblemKind::kMissing),
            (std::vector<std::string>{std::string(kLayer) + ".weight_scale", "model.norm.weight"}));
  EXPECT_EQ(Found(inspection, ProblemKind::kSurplus),
            std::vector<std::string>{std::string(kLayer) + ".weight_packed"});
  EXPECT_EQ(Found(inspection, ProblemKind::kShape),
            (std::vector<std::string>{"model.layers.1.input_layernorm.weight",
                                      "model.layers.1.mlp.up_proj.weight"}));
  EXPECT_EQ(Found(inspection, ProblemKind::kDType),
            std::vector<std::string>{"model.layers.1.mlp.down_proj.weight"});
  std::vector<std::string> unknown = Found(inspection, ProblemKind::kUnknown);
  std::sort(unknown.begin(), unknown.end());
  EXPECT_EQ(unknown, (std::vector<std::string>{"lm_head", "model.vision.patch.weight"}));
  EXPECT_EQ(std::count_if(inspection.problems.begin(), inspection.problems.end(),
                          [](const Problem& problem) { return problem.is_error(); }),
            6);
  EXPECT_EQ(ProblemTable(inspection.problems).rows.size(), inspection.problems.size());
}

// Changes one member of the first group's weights.
auto SetWeights(const char* key, Value value) {
  return [=](Value* config) {
    Value* groups = config->Find("quantization_config")->Find("config_groups");
    groups->as_object().front().second.Find("weights")->Set(key, value);
  };
}

TEST(Diagnosis, AConfigThatContradictsTheTensorsIsAllProblemsNoCrash) {
  for (const auto& [key, value] : {std::pair<const char*, Value>{"num_bits", 3},
                                   {"group_size", 100},
                                   {"group_size", 256},
                                   {"symmetric", false},
                                   {"type", "float"}}) {
    const Inspection inspection =
        InspectedCheckpoint("llama-w4a16-g32", {}, SetWeights(key, value)).Inspect();
    EXPECT_GE(inspection.problems.size(), 14U) << key;  // one a layer at least
  }
}

TEST(Diagnosis, PatternsThatMatchNothingAndFusedLayersThatDisagreeAreWarnings) {
  const InspectedCheckpoint checkpoint("llama-w8a8", {}, [](Value* config) {
    Value* ignore = config->Find("quantization_config")->Find("ignore");
    ignore->as_array().emplace_back("model.layers.9.mlp.up_proj");
    ignore->as_array().emplace_back("re:.*0.self_attn.k_proj");
  });
  const Inspection inspection = checkpoint.Inspect();
  EXPECT_EQ(Found(inspection, ProblemKind::kPattern),
            std::vector<std::string>{"model.layers.9.mlp.up_proj"});
  EXPECT_EQ(Found(inspection, ProblemKind::kFused),
            std::vector<std::string>{"model.layers.0.self_attn.k_proj"});
}

TEST(Diagnosis, NoConfigAndNoWeightsAreErrors) {
  const testing::TemporaryFolder empty;
  const testing::TestContext context;
  EXPECT_FALSE(InspectCheckpoint(empty.path(), context.context).ok());
}

}  // namespace
}  // namespace octavo
