#include "inspect/cache_table.h"

#include <gtest/gtest.h>

#include "unit/inspect/inspected_checkpoint.h"

namespace octavo {
namespace {

using testing::InspectedCheckpoint;

TEST(CacheTable, KeysValuesAndQueriesWithScalesAndBytes) {
  const Inspection inspection = InspectedCheckpoint("llama-attention-fp8").Inspect();
  const Table table = CacheTable(inspection);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0][1].text, "fp8 tensor static");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(table.rows[i][2].value.as_int(), 2);
    const Value& scales = table.rows[i][3].value;
    EXPECT_GT(scales.Find("min")->as_double(), 0);
    EXPECT_LE(scales.Find("min")->as_double(), scales.Find("max")->as_double());
  }
  // Two blocks of two kv heads of 64; queries are not kept.
  EXPECT_EQ(table.rows[0][4].value.as_int(), 2 * 128);
  EXPECT_EQ(table.rows[1][5].value.as_int(), 2 * 2 * 128);
  EXPECT_TRUE(table.rows[2][4].value.is_null());
}

TEST(CacheTable, NothingIsDeclaredNothingIsShown) {
  EXPECT_TRUE(CacheTable(InspectedCheckpoint("llama-w8a8").Inspect()).rows.empty());
}

}  // namespace
}  // namespace octavo
