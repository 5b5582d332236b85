// Checkpoints as they lie on disk: one of each format is kept here and must go on being read, and
// written as it was.
#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/checkpoint_writer.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;
using testing::TestData;

class CheckpointGolden : public ::testing::TestWithParam<std::string> {};

// Reads every tensor and writes it again under the same plan.
TEST_P(CheckpointGolden, SaveLoadSaveIsByteEqual) {
  const std::filesystem::path source = TestData(GetParam() + "/model.safetensors");
  const auto file = SafetensorsFile::Open(source);
  ASSERT_OK(file);
  std::vector<PlannedTensor> plan;
  for (const auto& [name, view] : file->tensors()) plan.push_back({name, view.dtype, view.shape});
  const TemporaryFolder folder;
  auto writer = CheckpointWriter::Create(folder.path() / "out", plan);
  ASSERT_OK(writer);
  for (const auto& [name, view] : file->tensors()) ASSERT_OK(writer->Write(name, view));
  ASSERT_OK(writer->Finish());
  ASSERT_OK(writer->Commit());
  EXPECT_EQ(ReadFile(folder.path() / "out/model.safetensors").value(), ReadFile(source).value());
}

std::string FormatName(const ::testing::TestParamInfo<std::string>& format) {
  std::string name = format.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Formats, CheckpointGolden,
                         ::testing::Values("arch/llama", "arch/llama_tied",
                                           "checkpoints/base-llama", "checkpoints/llama-w8a8",
                                           "checkpoints/odd-w8a8"),
                         FormatName);

}  // namespace
}  // namespace octavo
