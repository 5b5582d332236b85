#include "inspect/inspection.h"

#include <gtest/gtest.h>

#include "inspect/compare_schemes.h"
#include "inspect/layer_table.h"
#include "unit/inspect/inspected_checkpoint.h"

namespace octavo {
namespace {

using testing::InspectedCheckpoint;

TEST(Inspection, BytesOfAllRowsAreThoseOfTheFile) {
  for (const std::string name : {"llama-w4a16-g32", "llama-fp8-dynamic-kv", "llama-nvfp4",
                                 "llama-spin-online", "old-actorder-group", "odd-w8a8"}) {
    const InspectedCheckpoint checkpoint(name);
    const Inspection inspection = checkpoint.Inspect();
    const auto size =
        static_cast<int64_t>(std::filesystem::file_size(checkpoint.folder() / "model.safetensors"));
    EXPECT_EQ(inspection.total_bytes(), size) << name;
    const Table table = SummaryTable(inspection);
    int64_t sum = 0;
    for (const auto& row : table.rows) sum += row[4].value.as_int();
    EXPECT_EQ(sum, 2 * size) << name;  // the total is a row too
    int64_t modules = 0;
    for (const auto& row : table.rows) modules += row[3].value.is_int() ? row[3].value.as_int() : 0;
    EXPECT_EQ(modules, std::ssize(inspection.modules) + 1) << name;  // and the file
  }
}

TEST(Inspection, BitsCountScalesButNoBias) {
  const auto bits = [](const std::string& checkpoint, const std::string& layer) {
    const Inspection inspection = InspectedCheckpoint(checkpoint).Inspect();
    return inspection.Find(layer).value()->bits_per_weight();
  };
  const std::string q_proj = "model.layers.0.self_attn.q_proj";
  // Four bits and a BF16 scale for 32 of them; the shape is 16 bytes for 256 x 256.
  EXPECT_DOUBLE_EQ(bits("llama-w4a16-g32", q_proj), 4 + 0.5 + 128.0 / 65536);
  EXPECT_DOUBLE_EQ(bits("llama-w4a16-g32", "lm_head"), 16);
  EXPECT_DOUBLE_EQ(bits("llama-mxfp4", q_proj), 4 + 0.25);
}

TEST(Inspection, ATiedHeadIsNoRowOfItsOwn) {
  const Inspection inspection = InspectedCheckpoint("odd-w8a8").Inspect();
  EXPECT_EQ(inspection.Find("lm_head").ok(), !inspection.model->head_is_embedding);
}

TEST(Inspection, AnUnknownLayerIsNamedWithTheNearest) {
  const Inspection inspection = InspectedCheckpoint("llama-w8a8").Inspect();
  const auto found = inspection.Find("model.layers.0.mlp.dwn_proj");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("did you mean \"model.layers.0.mlp.down_proj\"?"),
            std::string::npos)
      << found.status().message();
}

TEST(LayerTable, WhyEndsAtTheSchemeAndGivesAReasonForEachOther) {
  const Inspection inspection = InspectedCheckpoint("llama-w4a16-g32").Inspect();
  const InspectedModule* module = inspection.Find("model.layers.1.mlp.up_proj").value();
  const Table table = WhyTable(*module);
  ASSERT_GT(table.rows.size(), 1U);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const bool last = i + 1 == table.rows.size();
    EXPECT_EQ(table.rows[i][2].value.as_bool(), last);
    EXPECT_EQ(table.rows[i][3].value.as_array().empty(), last);
  }
  EXPECT_EQ(table.rows.back()[1].text, module->scheme->name);
}

TEST(LayerTable, LayersHaveARowEach) {
  const Inspection inspection = InspectedCheckpoint("llama-mixed").Inspect();
  EXPECT_EQ(LayersTable(inspection).rows.size(), inspection.modules.size());
}

TEST(CompareSchemes, SizesAreThoseOfTheCheckpointsThatTheLibraryMade) {
  const Table table = CompareSchemesTable(InspectedCheckpoint("base-llama").Inspect()).value();
  const auto row = [&](const std::string& preset) -> const std::vector<Cell>& {
    for (const auto& one : table.rows) {
      if (one[0].text == preset) return one;
    }
    ADD_FAILURE() << preset;
    return table.rows.front();
  };
  for (const auto& [preset, checkpoint] : {std::pair{"W8A8", "llama-w8a8"},
                                           {"FP8", "llama-fp8"},
                                           {"FP8_BLOCK", "llama-fp8-block"},
                                           {"NVFP4", "llama-nvfp4"},
                                           {"MXFP4", "llama-mxfp4"},
                                           {"W4A16", "llama-w4a16"},
                                           {"W4A16_ASYM", "llama-w4a16-asym"}}) {
    const Inspection made = InspectedCheckpoint(checkpoint).Inspect();
    EXPECT_EQ(row(preset)[2].value.as_int(), made.total_bytes() - made.header_bytes) << preset;
  }
  EXPECT_EQ(row("UNQUANTIZED")[3].text, "100.0 %");
}

}  // namespace
}  // namespace octavo
