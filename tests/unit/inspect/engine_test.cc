// The rules of each engine on each machine, as the spec states them.
#include "inspect/engine.h"

#include <gtest/gtest.h>

#include <optional>

#include "inspect/target_table.h"
#include "unit/inspect/inspected_checkpoint.h"

namespace octavo {
namespace {

using testing::InspectedCheckpoint;

const Engine& EngineNamed(std::string_view name) {
  for (const Engine* engine : AllEngines()) {
    if (engine->name == name) return *engine;
  }
  ADD_FAILURE() << name;
  return *AllEngines().front();
}

const Machine& MachineNamed(std::string_view name) {
  for (const Machine& machine : AllMachines()) {
    if (machine.name.find(name) != std::string_view::npos) return machine;
  }
  ADD_FAILURE() << name;
  return AllMachines().front();
}

Verdict Judge(const Inspection& inspection, std::string_view engine, std::string_view machine,
              std::vector<FusedScaleLoss> losses = {}) {
  const std::vector<Subject> subjects = SubjectsOf(inspection);
  return JudgeAll(EngineNamed(engine), MachineNamed(machine), subjects,
                  FactsOf(inspection, std::move(losses)));
}

struct Case {
  std::string checkpoint;
  std::string engine;
  std::string machine;
  Outcome outcome;
  std::string text;  // in one of the findings; empty: there is none
};

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.checkpoint << ", " << item.engine << ", " << item.machine;
}

class EngineRule : public ::testing::TestWithParam<Case> {};

TEST_P(EngineRule, JudgesAsTheSpecSays) {
  const Case& expected = GetParam();
  const Inspection inspection = InspectedCheckpoint(expected.checkpoint).Inspect();
  const Verdict verdict = Judge(inspection, expected.engine, expected.machine);
  EXPECT_EQ(OutcomeName(verdict.outcome), OutcomeName(expected.outcome));
  std::string texts;
  for (const Finding& finding : verdict.findings) {
    texts += finding.text + " => " + finding.remedy + "\n";
    EXPECT_NE(finding.source, "");
  }
  EXPECT_EQ(expected.text.empty(), texts.empty()) << texts;
  EXPECT_NE(texts.find(expected.text), std::string::npos) << texts;
}

INSTANTIATE_TEST_SUITE_P(
    All, EngineRule,
    ::testing::Values(
        Case{"llama-w8a8", "vLLM", "SM75", Outcome::kNative, ""},
        Case{"llama-w8a8", "vLLM", "SM100", Outcome::kRefused, "Int8 not supported on SM100"},
        Case{"llama-w8a8", "vLLM", "SM120", Outcome::kRefused, "quantize to FP8_DYNAMIC"},
        Case{"llama-w8a8", "vLLM", "AVX-512", Outcome::kNative, ""},
        Case{"llama-w8a8", "SGLang", "SM75", Outcome::kRefused, "Min capability: 80"},
        Case{"llama-w8a8", "SGLang", "SM90", Outcome::kNative, ""},
        Case{"llama-w8a8", "SGLang", "AMX", Outcome::kRefused, "w8a8_int8"},
        Case{"llama-w8a8-token-asym", "SGLang", "SM80", Outcome::kFallback, "zero points"},
        Case{"llama-w8a8-token-asym", "vLLM", "SM80", Outcome::kNative, ""},
        Case{"llama-w8a8-static", "SGLang", "SM80", Outcome::kFallback, "never read"},
        Case{"llama-w8a8-tensor", "SGLang", "SM80", Outcome::kRefused, "scales_b"},
        Case{"odd-w8a8", "vLLM", "SM100", Outcome::kRefused, "Int8"},
        Case{"llama-fp8", "vLLM", "SM86", Outcome::kFallback, "W8A16"},
        Case{"llama-fp8", "vLLM", "SM89", Outcome::kNative, ""},
        Case{"llama-fp8-dynamic", "SGLang", "SM80", Outcome::kFallback, "W8A16"},
        Case{"llama-fp8-block", "SGLang", "SM80", Outcome::kRefused, "not of blocks"},
        Case{"llama-fp8-block", "vLLM", "SM90", Outcome::kNative, ""},
        Case{"llama-fp8-block", "vLLM", "AVX-512", Outcome::kRefused, "Failed to find a kernel"},
        Case{"llama-fp8-block", "vLLM", "AMX", Outcome::kFallback, "W8A16"},
        Case{"odd-fp8-block", "vLLM", "SM90", Outcome::kRefused, "block_n = 128"},
        Case{"llama-fp8-channel-a16", "vLLM", "AVX2", Outcome::kRefused, "Failed to find"},
        Case{"llama-fp8-dynamic-kv", "vLLM", "AMX", Outcome::kRefused, "CPU_ATTN"},
        Case{"llama-kv-int8", "vLLM", "SM90", Outcome::kRefused, "NotImplementedError"},
        Case{"llama-w4a16", "vLLM", "SM75", Outcome::kNative, ""},
        Case{"llama-w4a16", "vLLM", "AVX2", Outcome::kRefused, "cpu_gemm_wna16"},
        Case{"llama-w4a16", "vLLM", "AMX", Outcome::kFallback, "VLLM_CPU_INT4_W4A8=0"},
        Case{"llama-w2a16", "vLLM", "SM80", Outcome::kFallback, "Marlin"},
        Case{"llama-w2a16", "vLLM", "AVX-512", Outcome::kRefused, "Failed to find"},
        Case{"llama-w2a16", "SGLang", "SM80", Outcome::kRefused, "2:4"},
        Case{"llama-w8a16", "vLLM", "AVX-512", Outcome::kRefused, "Failed to find"},
        Case{"llama-w4a16-head", "SGLang", "SM80", Outcome::kNative, "!!!!"},
        Case{"llama-w4a16-tensor-asym", "vLLM", "SM80", Outcome::kRefused, "No compressed-tensors"},
        Case{"old-actorder-group", "vLLM", "SM80", Outcome::kRefused, "no longer supported"},
        Case{"llama-w4a8", "vLLM", "SM80", Outcome::kRefused, "only Arm CPUs"},
        Case{"llama-w4a8", "vLLM", "SM90", Outcome::kRefused, "weight_packed"},
        Case{"llama-nvfp4", "vLLM", "SM100", Outcome::kNative, ""},
        Case{"llama-nvfp4", "vLLM", "SM75", Outcome::kFallback, "W4A16"},
        Case{"llama-nvfp4", "SGLang", "SM90", Outcome::kRefused, "w4a4 nvfp4"},
        Case{"llama-nvfp4a16", "vLLM", "SM75", Outcome::kNative, ""},
        Case{"llama-nvfp4a16", "SGLang", "SM100", Outcome::kRefused, "No compressed-tensors"},
        Case{"llama-mxfp4", "vLLM", "SM75", Outcome::kRefused, "Min capability: 80"},
        Case{"llama-mxfp4a16", "vLLM", "SM100", Outcome::kFallback, "weights alone"},
        Case{"llama-mxfp4a16", "vLLM", "SM90", Outcome::kNative, ""},
        Case{"llama-mxfp8", "SGLang", "SM100", Outcome::kRefused, "No compressed-tensors"},
        Case{"llama-mxfp8", "Octavo", "AVX2", Outcome::kNative, ""},
        Case{"base-llama", "SGLang", "SM75", Outcome::kNative, ""}),
    [](const auto& item) {
      std::string name = item.param.checkpoint + "_" + item.param.engine + "_" + item.param.machine;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// One layer with group-64 weights and FP8 inputs: row 4 is for SM90 alone.
TEST(Engine, ExactNinetyIsNoMinimum) {
  const Inspection inspection = InspectedCheckpoint("llama-w4afp8-packed").Inspect();
  EXPECT_EQ(Judge(inspection, "vLLM", "SM90").rows,
            std::vector<std::string>{"row 4: int4 weights, FP8 inputs"});
  EXPECT_EQ(Judge(inspection, "vLLM", "SM100").outcome, Outcome::kRefused);
  EXPECT_TRUE(Judge(inspection, "vLLM", "SM100").rows.empty());
}

TEST(Engine, AFusedLayerThatIsPartlyIgnoredIsRefused) {
  const InspectedCheckpoint checkpoint("llama-w8a8", {}, [](Value* config) {
    Value* ignore = config->Find("quantization_config")->Find("ignore");
    ignore->as_array().emplace_back("re:.*self_attn.v_proj");
  });
  const Verdict verdict = Judge(checkpoint.Inspect(), "vLLM", "SM80");
  ASSERT_EQ(verdict.outcome, Outcome::kRefused);
  EXPECT_NE(verdict.findings.front().text.find("Found a different quantization schemes"),
            std::string::npos);
}

TEST(Engine, ALayerThatNothingMatchesIsRefusedBySglangAlone) {
  const InspectedCheckpoint checkpoint("llama-w8a8", {}, [](Value* config) {
    Value* group =
        &config->Find("quantization_config")->Find("config_groups")->as_object()[0].second;
    group->Set("targets", Value(Value::Array{"re:.*mlp.*"}));
  });
  const Inspection inspection = checkpoint.Inspect();
  EXPECT_EQ(Judge(inspection, "vLLM", "SM80").outcome, Outcome::kNative);
  const Verdict verdict = Judge(inspection, "SGLang", "SM80");
  EXPECT_EQ(verdict.outcome, Outcome::kRefused);
  EXPECT_NE(verdict.findings.front().text.find("Unable to find matching target"),
            std::string::npos);
}

TEST(Engine, TargetsInTheOrderOfTheFileMayChooseAnotherGroup) {
  const InspectedCheckpoint checkpoint("llama-w8a8", {}, [](Value* config) {
    Value* groups = config->Find("quantization_config")->Find("config_groups");
    Value other = groups->as_object()[0].second;
    other.Find("weights")->Set("strategy", "tensor");
    // Both match by regular expression; the library takes the smaller string, vLLM the first.
    groups->as_object()[0].second.Set("targets", Value(Value::Array{"re:model.*"}));
    other.Set("targets", Value(Value::Array{"re:.*layers.0.*"}));
    groups->Set("group_1", other);
  });
  const Inspection inspection = checkpoint.Inspect();
  EXPECT_EQ(FactsOf(inspection, {}).other_targets.size(), 7U);
  EXPECT_EQ(FactsOf(InspectedCheckpoint("llama-mixed").Inspect(), {}).other_targets.size(), 0U);
}

TEST(Engine, InputScalesOfFusedLayersThatDifferAreNamed) {
  EXPECT_TRUE(FactsOf(InspectedCheckpoint("llama-w8a8-static").Inspect(), {}).torn_inputs.empty());
  const InspectedCheckpoint checkpoint("llama-w8a8-static", [](testing::TensorMap* tensors) {
    Tensor& scale = (*tensors)["model.layers.1.self_attn.k_proj.input_scale"];
    scale.bytes()[0] ^= std::byte{1};
  });
  const Inspection inspection = checkpoint.Inspect();
  EXPECT_EQ(FactsOf(inspection, {}).torn_inputs,
            std::vector<std::string>{"model.layers.1.self_attn.q_proj"});
  const Verdict verdict = Judge(inspection, "vLLM", "SM80");
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_NE(verdict.findings.front().text.find("the last loaded"), std::string::npos);
}

TEST(TargetTable, JsonHasWhatTheTableHas) {
  const Inspection inspection = InspectedCheckpoint("llama-w8a8").Inspect();
  const std::vector<Table> tables = TargetTables(SubjectsOf(inspection), FactsOf(inspection, {}));
  ASSERT_EQ(tables.size(), 3U);
  const Table& targets = tables[1];
  const Table& findings = tables[2];
  EXPECT_EQ(targets.rows.size(), AllMachines().size());
  for (const auto& row : targets.rows) {
    for (size_t i = 1; i < row.size(); ++i) {
      if (row[i].value.is_null()) {
        EXPECT_EQ(row[i].text, "-");
        continue;
      }
      EXPECT_TRUE(row[i].text.starts_with(row[i].value.Find("outcome")->as_string()));
      for (const Value& number : row[i].value.Find("findings")->as_array()) {
        const auto index = static_cast<size_t>(number.as_int());
        ASSERT_LE(index, findings.rows.size());
        EXPECT_EQ(findings.rows[index - 1][0].value.as_int(), number.as_int());
        EXPECT_EQ(findings.rows[index - 1][1].text, targets.columns[i].heading);
      }
    }
  }
}

// What a table shows and what is judged are one thing.
TEST(DecisionTable, ItsLastRowIsTheOneThatIsJudgedByAndTheOthersSayWhyNot) {
  for (const std::string name : {"llama-w8a8", "llama-w4a16-g32", "llama-w4afp8", "llama-fp8-block",
                                 "llama-nvfp4", "llama-mxfp8", "made-wna8o8", "llama-w4a4"}) {
    const Inspection inspection = InspectedCheckpoint(name).Inspect();
    for (const Subject& subject : SubjectsOf(inspection)) {
      for (const Engine* engine : AllEngines()) {
        if (engine->rows == nullptr) continue;
        for (const Machine& machine : AllMachines()) {
          SCOPED_TRACE(name + ", " + std::string(engine->name) + ", " + std::string(machine.name));
          const std::vector<TableRow> rows = engine->rows(subject, machine);
          const std::string judged = engine->judge(subject, machine).row;
          EXPECT_EQ(rows.empty(), !subject.declared->weights);
          for (size_t i = 0; i < rows.size(); ++i)
            EXPECT_EQ(rows[i].missing.empty(), rows[i].name == judged) << rows[i].name;
        }
      }
    }
  }
}

TEST(DecisionTable, IsPrintedOnceForMachinesThatAreAlike) {
  const Inspection inspection = InspectedCheckpoint("llama-w4afp8").Inspect();
  const LinearLayer& layer = *inspection.Find("model.layers.0.mlp.down_proj").value()->layer;
  const std::vector<Table> tables = DecisionTables(SubjectWith(inspection, layer));
  ASSERT_EQ(tables.size(), 3U);  // vLLM on Hopper and elsewhere, SGLang
  const auto& hopper = tables[1];
  EXPECT_NE(hopper.title.find("vLLM makes of it (Hopper (SM90))"), std::string::npos)
      << hopper.title;
  EXPECT_NE(hopper.rows.back()[0].text.find("row 4"), std::string::npos);
  EXPECT_EQ(hopper.rows.back()[1].text, "yes");
  EXPECT_NE(hopper.rows.front()[2].text.find("weights are NVFP4"), std::string::npos);
}

}  // namespace
}  // namespace octavo
