#include "inspect/table.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace octavo {
namespace {

Table Example() {
  return {.key = "fruit",
          .title = "Fruit",
          .columns = {{"name", "name"}, {"bytes", "size", true}, {"about", "what it is"}},
          .rows = {{"äpple", BytesCell(999), "round"},
                   {"fig", BytesCell(1'234'567), "soft and sweet and small"}},
          .notes = {"two of them"}};
}

TEST(Table, ColumnsAreAlignedAndTheLastOneIsBroken) {
  EXPECT_EQ(TableText(Example(), 20),
            "Fruit\n"
            "  name     size  what it is\n"
            "  äpple  999 B   round\n"
            "  fig    1.2 MB  soft and sweet and small\n"
            "  two of them\n");
  Table wide = Example();
  wide.rows[1][2] = "soft and sweet and small, and best when it is ripe";
  EXPECT_EQ(TableText(wide, 50),
            "Fruit\n"
            "  name     size  what it is\n"
            "  äpple  999 B   round\n"
            "  fig    1.2 MB  soft and sweet and small, and\n"
            "                 best when it is ripe\n"
            "  two of them\n");
}

TEST(Table, JsonHasTheCellsAndNotTheirPrint) {
  EXPECT_EQ(WriteJson(TablesJson({Example()})),
            "{\"fruit\": {\"rows\": [{\"name\": \"äpple\", \"bytes\": 999, \"about\": \"round\"}, "
            "{\"name\": \"fig\", \"bytes\": 1234567, \"about\": \"soft and sweet and small\"}], "
            "\"notes\": [\"two of them\"]}}");
}

TEST(Table, NumbersHaveUnits) {
  EXPECT_EQ(BytesCell(2'500'000'000).text, "2.50 GB");
  EXPECT_EQ(BytesCell(1000).text, "1.0 kB");
  EXPECT_EQ(ShareCell(0.125).text, "12.5 %");
  EXPECT_EQ(NumberCell(4.5, 2).text, "4.50");
  EXPECT_EQ(Cell::List({}, ", ").text, "-");
  EXPECT_EQ(Cell::List({"a", "b"}, ", ").text, "a, b");
}

}  // namespace
}  // namespace octavo
