#include "io/sha256.h"

#include "support/golden_files.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

// The first two are the standard's own vectors.
TEST(Sha256, KnownDigests) {
  const testing::TemporaryFolder folder;
  const auto digest = [&](const std::string& content) {
    testing::WriteFile(folder.path() / "file", content);
    return Sha256OfFile(folder.path() / "file").value();
  };
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256OfText("abc"), digest("abc"));
  // More than one piece.
  EXPECT_EQ(digest(std::string(3'000'000, 'a')).size(), 64U);
  EXPECT_NE(digest(std::string(3'000'000, 'a')), digest(std::string(3'000'001, 'a')));
  EXPECT_EQ(Sha256OfFile(folder.path() / "none").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace octavo
