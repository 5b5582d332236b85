#include "io/passive_files.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/golden_files.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

TEST(PassiveFilesTest, CopiesAllButWeightsAndWhatIsWrittenAnew) {
  testing::TemporaryFolder folder;
  const fs::path source = folder.path() / "source";
  const fs::path destination = folder.path() / "destination";
  for (const char* name : {"original", "additional_chat_templates"}) {
    fs::create_directories(source / name);
  }
  fs::create_directories(destination);
  const std::vector<std::string> copied = {
      "LICENSE",
      "added_tokens.json",
      "additional_chat_templates/tool_use.jinja",
      "chat_template.jinja",
      "generation_config.json",
      "merges.txt",
      "modeling_own.py",
      "preprocessor_config.json",
      "special_tokens_map.json",
      "tokenizer.json",
      "tokenizer.model",
      "tokenizer_config.json",
      "vocab.json",
  };
  const std::vector<std::string> left = {
      "config.json",       "model.safetensors",  "model.safetensors.index.json",
      "recipe.yaml",       "README.md",          "pytorch_model.bin",
      "tf_model.h5",       "flax_model.msgpack", "pytorch_model.bin.index.json",
      ".gitattributes",    "model.gguf",         "consolidated.00.pth",
      "original/data.txt",
  };
  for (const std::string& name : copied) {
    testing::WriteFile(source / name, "content of " + name);
  }
  for (const std::string& name : left) testing::WriteFile(source / name, "x");
  // Hub caches hold links, and may be read-only.
  fs::remove(source / "vocab.json");
  testing::WriteFile(folder.path() / "blob", "content of vocab.json");
  fs::create_symlink(folder.path() / "blob", source / "vocab.json");
  fs::permissions(source / "merges.txt", fs::perms::owner_read);
  testing::WriteFile(destination / "tokenizer.json", "old");

  for (int run = 0; run < 2; ++run) {
    Result<std::vector<std::string>> names = CopyPassiveFiles(source, destination);
    ASSERT_OK(names);
    EXPECT_EQ(*names, copied);
  }
  for (const std::string& name : copied) {
    EXPECT_EQ(ReadFile(destination / name).value(), "content of " + name);
    EXPECT_FALSE(fs::is_symlink(destination / name));
  }
  for (const std::string& name : left) EXPECT_FALSE(fs::exists(destination / name)) << name;
}

TEST(PassiveFilesTest, AMissingFolderIsAnError) {
  testing::TemporaryFolder folder;
  const auto result = CopyPassiveFiles(folder.path() / "none", folder.path());
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("none"), std::string::npos);
}

}  // namespace
}  // namespace octavo
