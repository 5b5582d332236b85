#include "io/work_folder.h"

#include "support/golden_files.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

TEST(WorkFolder, IsHeldByOne) {
  const testing::TemporaryFolder folder;
  const fs::path out = folder.path() / "some/where/out";
  {
    const auto held = WorkFolder::Open(out.string() + "/");
    ASSERT_OK(held);
    EXPECT_EQ((*held)->out(), out);
    EXPECT_EQ((*held)->path(), out.string() + ".unfinished");
    const auto second = WorkFolder::Open(out);
    EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
    EXPECT_NE(second.status().message().find("another run"), std::string::npos);
  }
  const auto later = WorkFolder::Open(out);
  ASSERT_OK(later);
  testing::WriteFile((*later)->path() / "x", "x");
  fs::create_directories((*later)->path() / "y/z");
  ASSERT_OK((*later)->Clear());
  EXPECT_TRUE(fs::is_empty((*later)->path()));
  EXPECT_FALSE(WorkFolder::Open(out).ok()) << "still held";
  (*later)->Remove();
  EXPECT_FALSE(fs::exists((*later)->path()));
}

TEST(WorkFolder, NamesThatAreNone) {
  EXPECT_EQ(WorkFolder::Open("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WorkFolder::Open("/").status().code(), StatusCode::kInvalidArgument);
  const testing::TemporaryFolder folder;
  testing::WriteFile(folder.path() / "out.unfinished", "a file");
  EXPECT_EQ(WorkFolder::Open(folder.path() / "out").status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace octavo
