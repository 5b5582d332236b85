#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/golden_files.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, std::string_view content) {
    testing::WriteFile(folder_.path() / name, content);
  }
  void WriteTensors(const std::string& name, const std::vector<std::string>& tensors) {
    std::vector<std::pair<std::string, TensorView>> views;
    for (const std::string& tensor : tensors) views.emplace_back(tensor, weight_);
    ASSERT_OK(WriteSafetensors(folder_.path() / name, views));
  }
  void WriteIndex(std::string_view weight_map) {
    Write("model.safetensors.index.json", R"({"weight_map":)" + std::string(weight_map) + "}");
  }
  Result<Checkpoint> Open() { return Checkpoint::Open(folder_.path()); }

  // That opening fails with `code`, naming the folder and each of `parts`.
  void ExpectRefused(StatusCode code, const std::vector<std::string>& parts) {
    const Result<Checkpoint> checkpoint = Open();
    ASSERT_FALSE(checkpoint.ok());
    EXPECT_EQ(checkpoint.status().code(), code) << checkpoint.status().ToString();
    const std::string& message = checkpoint.status().message();
    EXPECT_NE(message.find(folder_.path().string()), std::string::npos) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
    }
  }

  testing::TemporaryFolder folder_;
  Tensor weight_ = Tensor::Zeros(DType::kBF16, {2, 3});
};

TEST_F(CheckpointTest, OpensOneFile) {
  Write("config.json", R"({"model_type":"llama"})");
  WriteTensors("model.safetensors", {"b", "a"});
  Result<Checkpoint> checkpoint = Open();
  ASSERT_OK(checkpoint);
  EXPECT_EQ(checkpoint->config().RequireString("model_type").value(), "llama");
  EXPECT_EQ(checkpoint->Names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(checkpoint->Contains("a"));
  EXPECT_FALSE(checkpoint->Contains("c"));
  EXPECT_EQ(checkpoint->Find("a").value().shape, (Shape{2, 3}));
  EXPECT_EQ(checkpoint->FileOf("a"), "model.safetensors");
  EXPECT_EQ(checkpoint->total_bytes(), 24);
  checkpoint->Forget("a");
  checkpoint->Forget("no such tensor");
  EXPECT_EQ(checkpoint->Find("a").value().bytes[0], std::byte{0});
}

TEST_F(CheckpointTest, OpensShardsByTheirIndex) {
  Write("config.json", "{}");
  WriteTensors("one.safetensors", {"a"});
  WriteTensors("two.safetensors", {"b", "extra"});
  WriteTensors("unrelated.safetensors", {"a"});
  WriteIndex(R"({"a":"one.safetensors","b":"two.safetensors"})");
  Result<Checkpoint> checkpoint = Open();
  ASSERT_OK(checkpoint);
  EXPECT_EQ(checkpoint->Names(), (std::vector<std::string>{"a", "b", "extra"}));
  EXPECT_EQ(checkpoint->FileOf("b"), "two.safetensors");
  EXPECT_EQ(checkpoint->files().size(), 2U);
}

TEST_F(CheckpointTest, FindNamesTheNearestTensor) {
  Write("config.json", "{}");
  WriteTensors("model.safetensors", {"model.norm.weight"});
  const Status status = Open()->Find("model.norms.weight").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("did you mean \"model.norm.weight\""), std::string::npos);
}

TEST_F(CheckpointTest, SaysWhatIsThereInstead) {
  ExpectRefused(StatusCode::kNotFound, {"no config.json", "expected model.safetensors"});
  Write("config.json", "{}");
  ExpectRefused(StatusCode::kNotFound, {"no safetensors"});
  Write("pytorch_model.bin", "x");
  ExpectRefused(StatusCode::kNotFound, {".bin"});
  Write("model.gguf", "x");
  ExpectRefused(StatusCode::kNotFound, {"octavo import"});
  WriteTensors("a.safetensors", {"a"});
  WriteTensors("b.safetensors", {"b"});
  ExpectRefused(StatusCode::kCorruptFile, {"2 safetensors files"});

  const Status gguf = Checkpoint::Open(folder_.path() / "model.gguf").status();
  EXPECT_NE(gguf.message().find("octavo import"), std::string::npos) << gguf.message();
  EXPECT_EQ(Checkpoint::Open(folder_.path() / "none").status().code(), StatusCode::kNotFound);
}

TEST_F(CheckpointTest, ABadConfigIsRefused) {
  WriteTensors("model.safetensors", {"a"});
  Write("config.json", "[]");
  ExpectRefused(StatusCode::kCorruptFile, {"config.json", "array"});
  Write("config.json", "{");
  ExpectRefused(StatusCode::kCorruptFile, {"config.json"});
}

TEST_F(CheckpointTest, AnIndexThatDisagreesIsRefused) {
  Write("config.json", "{}");
  WriteTensors("one.safetensors", {"a"});
  WriteTensors("two.safetensors", {"b"});
  WriteTensors("both.safetensors", {"a", "b"});
  WriteIndex(R"({"a":"one.safetensors","b":"gone.safetensors"})");
  ExpectRefused(StatusCode::kNotFound, {"names a shard", "gone.safetensors"});
  WriteIndex(R"({"a":"two.safetensors"})");
  ExpectRefused(StatusCode::kCorruptFile, {"tensor a is not in two.safetensors"});
  WriteIndex(R"({"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors"})");
  ExpectRefused(StatusCode::kCorruptFile,
                {"tensor b is not in one.safetensors", "two.safetensors"});
  WriteIndex(R"({"a":"one.safetensors","b":"both.safetensors"})");
  ExpectRefused(StatusCode::kCorruptFile, {"tensor a is in", "both.safetensors"});
  WriteIndex(R"([])");
  ExpectRefused(StatusCode::kCorruptFile, {"index.json", "weight_map"});
  WriteIndex(R"({"a":7})");
  ExpectRefused(StatusCode::kCorruptFile, {"tensor a", "integer"});
  for (const char* name : {"../one.safetensors", "/etc/passwd", "", "..", "sub/one.safetensors"}) {
    WriteIndex(R"({"a":")" + std::string(name) + "\"}");
    ExpectRefused(StatusCode::kCorruptFile, {"tensor a", "no name of a file"});
  }
}

}  // namespace
}  // namespace octavo
