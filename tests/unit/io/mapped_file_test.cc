#include "io/mapped_file.h"

#include <gtest/gtest.h>

#include "support/golden_files.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

TEST(MappedFileTest, ForgottenBytesReadTheSameAgain) {
  testing::TemporaryFolder folder;
  std::string content(3 * 4096 + 100, 'a');
  content[5000] = 'b';
  testing::WriteFile(folder.path() / "file", content);
  auto file = MappedFile::Open(folder.path() / "file");
  ASSERT_OK(file);
  const std::span bytes = (*file)->bytes();
  ASSERT_EQ(bytes.size(), content.size());
  for (const auto& part : {bytes, bytes.subspan(1, 10), bytes.subspan(4096, 4096),
                           bytes.subspan(100), bytes.subspan(bytes.size())}) {
    (*file)->Forget(part);
    EXPECT_EQ(bytes[5000], std::byte{'b'});
  }
}

TEST(MappedFileTest, AnEmptyFileHasNoBytes) {
  testing::TemporaryFolder folder;
  testing::WriteFile(folder.path() / "file", "");
  auto file = MappedFile::Open(folder.path() / "file");
  ASSERT_OK(file);
  EXPECT_TRUE((*file)->bytes().empty());
  (*file)->Forget((*file)->bytes());
}

}  // namespace
}  // namespace octavo
