#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/temporary_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  size_t FilesInFolder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  testing::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(FileTest, WritesAndReadsBytes) {
  const std::string content("a\0b\xFF\n", 5);
  ASSERT_TRUE(WriteFileAtomically(folder_ / "x", content).ok());
  EXPECT_EQ(*ReadFile(folder_ / "x"), content);
  ASSERT_TRUE(WriteFileAtomically(folder_ / "x", "").ok());
  EXPECT_EQ(*ReadFile(folder_ / "x"), "");
  EXPECT_EQ(FilesInFolder(), 1U);
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  fs::create_directories(folder_ / "taken" / "inside");
  const Status status = WriteFileAtomically(folder_ / "taken", "new");
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find("taken: cannot rename into place: "), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "taken" / "inside"));
  EXPECT_EQ(FilesInFolder(), 1U);
}

TEST_F(FileTest, AMissingFolderIsNamed) {
  const Status status = WriteFileAtomically(folder_ / "absent" / "x", "new");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("absent/x"), std::string::npos);
}

TEST_F(FileTest, ReadsNoMoreThanAllowed) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "x", "12345").ok());
  EXPECT_EQ(*ReadFile(folder_ / "x", 5), "12345");
  const Status status = ReadFile(folder_ / "x", 4).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruptFile);
  EXPECT_NE(status.message().find("5 bytes, at most 4"), std::string::npos);
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(ReadFile(folder_ / "absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(folder_).status().code(), StatusCode::kIo);
  EXPECT_EQ(ReadFile("/dev/zero").status().code(), StatusCode::kIo);
  // A pipe that nobody writes to: opening it must not wait.
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(folder_ / "pipe").status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace octavo
