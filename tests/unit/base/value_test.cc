#include "base/value.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Value, SetKeepsOrderAndReplaces) {
  Value value;
  value.Set("b", 1);
  value.Set("a", "x");
  value.Set("b", 2.5);
  ASSERT_EQ(value.as_object().size(), 2U);
  EXPECT_EQ(value.as_object()[0], Value::Member("b", 2.5));
  value.Erase("b");
  value.Erase("absent");
  EXPECT_EQ(value, Value(Value::Object{{"a", "x"}}));
}

TEST(Value, FindOnOtherTypesIsNull) {
  EXPECT_EQ(Value(3).Find("a"), nullptr);
  EXPECT_EQ(Value().Find("a"), nullptr);
  EXPECT_EQ(Value::MakeObject().Find("a"), nullptr);
}

TEST(Value, IntegersAndFloatsAreNotTheSame) {
  EXPECT_NE(Value(1), Value(1.0));
  EXPECT_EQ(Value(1).as_double(), 1.0);
  EXPECT_EQ(Value(1).type_name(), "integer");
  EXPECT_EQ(Value(1.0).type_name(), "number");
}

TEST(Value, TypedMembersFallBackOnAbsentAndNull) {
  const Value value = Value::Object{{"n", nullptr}, {"i", 7}, {"d", 0.5}, {"s", "t"}, {"t", true}};
  EXPECT_EQ(*value.GetInt("i", 1), 7);
  EXPECT_EQ(*value.GetInt("n", 1), 1);
  EXPECT_EQ(*value.GetInt("absent", 1), 1);
  EXPECT_EQ(*value.GetDouble("i", 1), 7.0);
  EXPECT_EQ(*value.GetDouble("d", 1), 0.5);
  EXPECT_EQ(*value.GetString("s", "u"), "t");
  EXPECT_EQ(*value.GetBool("t", false), true);
  EXPECT_EQ(*value.RequireInt("i"), 7);
  EXPECT_EQ(*value.RequireString("s"), "t");
}

TEST(Value, TypedMembersNameKeyFoundAndExpected) {
  const Value value = Value::Object{{"n", nullptr}, {"d", 0.5}, {"s", "t"}};
  EXPECT_EQ(value.GetInt("d", 1).status().message(), "\"d\" is number, expected an integer");
  EXPECT_EQ(value.GetDouble("s", 1).status().message(), "\"s\" is string, expected a number");
  EXPECT_EQ(value.GetString("d", "").status().message(), "\"d\" is number, expected a string");
  EXPECT_EQ(value.GetBool("s", true).status().message(), "\"s\" is string, expected true or false");
  EXPECT_EQ(value.RequireInt("n").status().message(), "\"n\" is missing");
  EXPECT_EQ(value.RequireString("absent").status().message(), "\"absent\" is missing");
  EXPECT_EQ(value.GetInt("d", 1).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace octavo
