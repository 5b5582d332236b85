#include "io/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "support/golden_files.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// A tensor whose bytes depend on `seed`.
Tensor Sample(Shape shape, uint8_t seed) {
  Tensor tensor(DType::kU8, std::move(shape));
  for (int64_t i = 0; i < tensor.num_bytes(); ++i) {
    tensor.bytes()[i] = static_cast<std::byte>(seed + i);
  }
  return tensor;
}

std::vector<std::string> FileNames(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class CheckpointWriterTest : public ::testing::Test {
 protected:
  // Writes and commits a checkpoint of one tensor.
  Status WriteOne(const std::string& tensor, const CheckpointWriterOptions& options = {}) {
    OCTAVO_ASSIGN_OR_RETURN(CheckpointWriter writer,
                            CheckpointWriter::Create(out_, {{tensor, DType::kU8, {4}}}, options));
    OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(writer.unfinished_folder() / "config.json", "{}"));
    OCTAVO_RETURN_IF_ERROR(writer.Write(tensor, Sample({4}, 1)));
    OCTAVO_RETURN_IF_ERROR(writer.Finish());
    return writer.Commit();
  }

  testing::TemporaryFolder folder_;
  fs::path out_ = folder_.path() / "out";
};

TEST_F(CheckpointWriterTest, LoadThenSaveGivesTheLibrarysBytes) {
  Result<SafetensorsFile> source =
      SafetensorsFile::Open(testing::TestData("io/library.safetensors"));
  ASSERT_OK(source);
  std::vector<PlannedTensor> plan;
  for (const auto& [name, view] : source->tensors()) plan.push_back({name, view.dtype, view.shape});
  Result<CheckpointWriter> writer = CheckpointWriter::Create(out_, plan);
  ASSERT_OK(writer);
  EXPECT_EQ(writer->total_bytes(), 238);
  for (auto planned = plan.rbegin(); planned != plan.rend(); ++planned) {
    ASSERT_OK(writer->Write(planned->name, source->Find(planned->name).value()));
  }
  ASSERT_OK(writer->Finish());
  EXPECT_FALSE(fs::exists(out_));
  ASSERT_OK(writer->Commit());
  EXPECT_EQ(FileNames(folder_.path()), (std::vector<std::string>{"out"}));
  EXPECT_EQ(FileNames(out_), (std::vector<std::string>{"model.safetensors"}));
  EXPECT_EQ(ReadFile(out_ / "model.safetensors").value(), ReadFile(source->path()).value());
}

TEST_F(CheckpointWriterTest, FillsShardsInTheOrderOfThePlan) {
  const std::vector<PlannedTensor> plan = {{"z", DType::kU8, {6}},     {"large", DType::kU8, {30}},
                                           {"b", DType::kU8, {5}},     {"a", DType::kU8, {5}},
                                           {"empty", DType::kU8, {0}}, {"c", DType::kU8, {1}}};
  Result<CheckpointWriter> writer =
      CheckpointWriter::Create(out_.string() + "/", plan, {.max_shard_bytes = 10});
  ASSERT_OK(writer);
  testing::WriteFile(writer->unfinished_folder() / "config.json", "{}");
  std::vector<std::thread> threads;
  for (size_t i = 0; i < plan.size(); ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(
          writer->Write(plan[i].name, Sample(plan[i].shape, static_cast<uint8_t>(50 * i))).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(writer->Finish());
  ASSERT_OK(Checkpoint::Open(writer->unfinished_folder()));
  ASSERT_OK(writer->Commit());

  EXPECT_EQ(ReadFile(out_ / "model.safetensors.index.json").value(), R"({
  "metadata": {
    "total_size": 47
  },
  "weight_map": {
    "a": "model-00003-of-00004.safetensors",
    "b": "model-00003-of-00004.safetensors",
    "c": "model-00004-of-00004.safetensors",
    "empty": "model-00003-of-00004.safetensors",
    "large": "model-00002-of-00004.safetensors",
    "z": "model-00001-of-00004.safetensors"
  }
}
)");
  Result<Checkpoint> checkpoint = Checkpoint::Open(out_);
  ASSERT_OK(checkpoint);
  for (size_t i = 0; i < plan.size(); ++i) {
    const Tensor expected = Sample(plan[i].shape, static_cast<uint8_t>(50 * i));
    const TensorView found = checkpoint->Find(plan[i].name).value();
    EXPECT_TRUE(std::equal(found.bytes, found.bytes + found.num_bytes(), expected.view().bytes))
        << plan[i].name;
  }
}

TEST_F(CheckpointWriterTest, NothingIsUnderTheOutputBeforeCommit) {
  Result<CheckpointWriter> writer = CheckpointWriter::Create(out_, {{"a", DType::kU8, {4}}});
  ASSERT_OK(writer);
  EXPECT_EQ(FileNames(folder_.path()), (std::vector<std::string>{"out.unfinished"}));
  EXPECT_EQ(writer->Commit().code(), StatusCode::kInternal);
  writer->Abandon();
  EXPECT_TRUE(FileNames(folder_.path()).empty());
}

TEST_F(CheckpointWriterTest, ALeftoverUnfinishedFolderIsReplaced) {
  fs::create_directories(out_.string() + ".unfinished/old");
  testing::WriteFile(out_.string() + ".unfinished/stale.safetensors", "x");
  ASSERT_OK(WriteOne("a"));
  EXPECT_EQ(FileNames(out_), (std::vector<std::string>{"config.json", "model.safetensors"}));
}

TEST_F(CheckpointWriterTest, MakesTheFoldersAbove) {
  out_ = folder_.path() / "some" / "where" / "out";
  ASSERT_OK(WriteOne("a"));
  EXPECT_TRUE(fs::exists(out_ / "model.safetensors"));
}

TEST_F(CheckpointWriterTest, AnOutputIsReplacedOnlyWithForceAndOnlyAtTheEnd) {
  ASSERT_OK(WriteOne("old"));
  testing::WriteFile(out_ / "notes.txt", "x");
  const Status refused = WriteOne("new");
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists);
  EXPECT_NE(refused.message().find("--force"), std::string::npos) << refused.message();

  Result<CheckpointWriter> writer =
      CheckpointWriter::Create(out_, {{"new", DType::kU8, {4}}}, {.force = true});
  ASSERT_OK(writer);
  EXPECT_TRUE(Checkpoint::Open(out_)->Contains("old"));
  writer->Abandon();
  EXPECT_TRUE(Checkpoint::Open(out_)->Contains("old"));

  ASSERT_OK(WriteOne("new", {.force = true}));
  EXPECT_EQ(Checkpoint::Open(out_)->Names(), (std::vector<std::string>{"new"}));
  EXPECT_FALSE(fs::exists(out_ / "notes.txt"));
  EXPECT_EQ(FileNames(folder_.path()), (std::vector<std::string>{"out"}));
}

TEST_F(CheckpointWriterTest, ForceDoesNotReplaceWhatIsNoCheckpoint) {
  fs::create_directories(out_);
  testing::WriteFile(out_ / "thesis.txt", "x");
  EXPECT_EQ(WriteOne("a", {.force = true}).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::exists(out_ / "thesis.txt"));
  fs::remove(out_ / "thesis.txt");
  ASSERT_OK(WriteOne("a", {.force = true}));  // an empty folder may be taken

  out_ = folder_.path() / "file";
  testing::WriteFile(out_, "x");
  EXPECT_EQ(WriteOne("a", {.force = true}).code(), StatusCode::kAlreadyExists);
}

TEST_F(CheckpointWriterTest, MistakesOfTheCallerAreNamed) {
  const auto create = [&](std::vector<PlannedTensor> plan) {
    return CheckpointWriter::Create(out_, std::move(plan)).status();
  };
  EXPECT_FALSE(create({{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}).ok());
  EXPECT_FALSE(create({{"a", DType::kU8, {-1}}}).ok());
  EXPECT_FALSE(create({{"a", DType::kF64, {int64_t{1} << 61}}}).ok());
  EXPECT_FALSE(
      CheckpointWriter::Create(out_, {{"a", DType::kU8, {1}}}, {.max_shard_bytes = 0}).ok());
  EXPECT_FALSE(CheckpointWriter::Create("", {{"a", DType::kU8, {1}}}).ok());
  EXPECT_FALSE(CheckpointWriter::Create("/", {{"a", DType::kU8, {1}}}).ok());

  Result<CheckpointWriter> writer =
      CheckpointWriter::Create(out_, {{"a", DType::kU8, {4}}, {"b", DType::kU8, {4}}});
  ASSERT_OK(writer);
  EXPECT_EQ(writer->Write("c", Sample({4}, 0)).code(), StatusCode::kInternal);
  EXPECT_EQ(writer->Write("a", Sample({2, 2}, 0)).code(), StatusCode::kInternal);
  EXPECT_EQ(writer->Write("a", Tensor::Zeros(DType::kI8, {4})).code(), StatusCode::kInternal);
  ASSERT_OK(writer->Write("a", Sample({4}, 0)));
  EXPECT_EQ(writer->Write("a", Sample({4}, 0)).code(), StatusCode::kInternal);
  const Status unfinished = writer->Finish();
  EXPECT_EQ(unfinished.code(), StatusCode::kInternal);
  EXPECT_NE(unfinished.message().find("tensor b"), std::string::npos) << unfinished.message();
}

TEST_F(CheckpointWriterTest, AFullDiskIsToldAtTheStart) {
  const Status status =
      CheckpointWriter::Create(out_, {{"a", DType::kU8, {int64_t{1} << 58}}}).status();
  EXPECT_EQ(status.code(), StatusCode::kIo) << status.ToString();
  EXPECT_NE(status.message().find("model.safetensors"), std::string::npos) << status.message();
  EXPECT_TRUE(FileNames(folder_.path()).empty());
}

}  // namespace
}  // namespace octavo
