#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace octavo {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument(std::to_string(value) + " is odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  OCTAVO_ASSIGN_OR_RETURN(const int half, Half(value));
  OCTAVO_ASSIGN_OR_RETURN(int quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int value) {
  OCTAVO_RETURN_IF_ERROR(Quarter(value).status());
  return OkStatus();
}

TEST(Status, CarriesCodeAndMessage) {
  EXPECT_TRUE(OkStatus().ok());
  EXPECT_EQ(OkStatus().ToString(), "ok");
  const Status status = CorruptFile("shape [3]");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kCorruptFile);
  EXPECT_EQ(status.ToString(), "corrupt file: shape [3]");
}

TEST(Status, AnnotateKeepsTheCodeAndLeavesSuccessAlone) {
  const Status status = NotFound("no such tensor").Annotate("shard 2").Annotate("model");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "model: shard 2: no such tensor");
  EXPECT_TRUE(OkStatus().Annotate("model").ok());
  EXPECT_EQ(OkStatus().Annotate("model").message(), "");
}

TEST(Status, EachMakerHasItsCode) {
  EXPECT_EQ(InvalidArgument("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(NotFound("").code(), StatusCode::kNotFound);
  EXPECT_EQ(AlreadyExists("").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(CorruptFile("").code(), StatusCode::kCorruptFile);
  EXPECT_EQ(Unsupported("").code(), StatusCode::kUnsupported);
  EXPECT_EQ(IoError("").code(), StatusCode::kIo);
  EXPECT_EQ(OutOfMemory("").code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(Cancelled("").code(), StatusCode::kCancelled);
  EXPECT_EQ(Internal("").code(), StatusCode::kInternal);
}

TEST(Result, MacrosPassValuesAndErrorsOn) {
  const Result<int> good = Quarter(8);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 2);
  EXPECT_EQ(Quarter(7).status().message(), "7 is odd");
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_TRUE(CheckQuarter(4).ok());
  EXPECT_EQ(CheckQuarter(2).code(), StatusCode::kInvalidArgument);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(ResultDeathTest, ValueOfAnErrorAbortsWithItsMessage) {
  EXPECT_DEATH(static_cast<void>(Half(3).value()), "3 is odd");
}

TEST(CheckDeathTest, NamesConditionAndValues) {
  OCTAVO_CHECK(1 + 1 == 2) << "not shown";
  EXPECT_DEATH(OCTAVO_CHECK(1 + 1 == 3) << "sum " << 2, "broken invariant: 1 \\+ 1 == 3 sum 2");
}

}  // namespace
}  // namespace octavo
