#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "support/golden_files.h"
#include "unit/io/gguf_builder.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

using testing::ByteString;
using testing::TemporaryFolder;
using testing::TestData;

// A file with this header and as many data bytes: 0, 1, 2 ...
std::string FileOf(std::string_view header, size_t data_bytes) {
  std::string data(data_bytes, '\0');
  std::iota(data.begin(), data.end(), '\0');
  return ByteString().String(header).Raw(data).bytes();
}

class SafetensorsTest : public ::testing::Test {
 protected:
  Result<SafetensorsFile> Open(std::string_view content) {
    const auto path = folder_.path() / "tested.safetensors";
    testing::WriteFile(path, content);
    return SafetensorsFile::Open(path);
  }

  TemporaryFolder folder_;
};

TEST_F(SafetensorsTest, ReadsWhatTheLibraryWrote) {
  Result<SafetensorsFile> file = SafetensorsFile::Open(TestData("io/library.safetensors"));
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().size(), 19U);
  EXPECT_EQ(file->metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  const TensorView i64 = file->Find("layer.13.int64").value();
  EXPECT_EQ(i64.dtype, DType::kI64);
  EXPECT_EQ(i64.shape, (Shape{3, 2}));
  EXPECT_EQ(i64.data<int64_t>()[0], 0x0706050403020100);
  EXPECT_EQ(file->Find("scalar").value().shape, Shape{});
  EXPECT_EQ(file->Find("scalar").value().elements(), 1);
  EXPECT_EQ(file->Find("a.bfloat16").value().elements(), 0);
  EXPECT_EQ(file->Find("q\"uote\\ \t\n é 東").value().shape, (Shape{3}));
  EXPECT_EQ(file->Find("layer.2.float8_e8m0fnu").value().dtype, DType::kF8E8M0);
}

TEST_F(SafetensorsTest, LoadThenSaveGivesTheLibrarysBytes) {
  for (const char* name : {"library", "awq", "gptq", "fp8", "bnb_nf4"}) {
    Result<SafetensorsFile> file =
        SafetensorsFile::Open(TestData(std::string("io/") + name + ".safetensors"));
    ASSERT_OK(file);
    std::vector<std::pair<std::string, TensorView>> tensors(file->tensors().begin(),
                                                            file->tensors().end());
    std::reverse(tensors.begin(), tensors.end());
    const auto once = folder_.path() / "once";
    ASSERT_OK(WriteSafetensors(once, tensors, file->metadata()));
    const std::string written = ReadFile(once).value();
    if (std::string_view(name) == "library") {
      EXPECT_EQ(written, ReadFile(file->path()).value());
    }
    Result<SafetensorsFile> again = SafetensorsFile::Open(once);
    ASSERT_OK(again);
    const auto twice = folder_.path() / "twice";
    ASSERT_OK(WriteSafetensors(twice, {again->tensors().begin(), again->tensors().end()},
                               again->metadata()));
    EXPECT_EQ(ReadFile(twice).value(), written) << name;
  }
}

TEST_F(SafetensorsTest, ReadsQuantizedCheckpointsOfOtherTools) {
  Result<SafetensorsFile> gptq = SafetensorsFile::Open(TestData("io/gptq.safetensors"));
  ASSERT_OK(gptq);
  EXPECT_EQ(gptq->metadata().at("gptq_bits"), "4");
  EXPECT_EQ(gptq->Find("model.layers.0.qzeros").value().shape, (Shape{2, 4}));
  EXPECT_EQ(gptq->Find("model.layers.0.g_idx").value().dtype, DType::kI32);
  Result<SafetensorsFile> fp8 = SafetensorsFile::Open(TestData("io/fp8.safetensors"));
  ASSERT_OK(fp8);
  EXPECT_EQ(fp8->Find("model.layers.0.weight").value().dtype, DType::kF8E4M3);
  EXPECT_EQ(fp8->Find("model.norm.weight").value().bytes -
                fp8->Find("model.layers.0.weight_scale_inv").value().bytes,
            16);
}

TEST_F(SafetensorsTest, HeaderMayBeUnsortedAndPadded) {
  Result<SafetensorsFile> file = Open(FileOf(
      R"({"z":{"data_offsets":[4,8],"shape":[4],"dtype":"U8"}, "a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}      )",
      8));
  ASSERT_OK(file);
  EXPECT_EQ(file->Find("a").value().bytes[0], std::byte{0});
  EXPECT_EQ(file->Find("z").value().bytes[0], std::byte{4});
  EXPECT_TRUE(file->metadata().empty());
}

TEST_F(SafetensorsTest, EmptyTensorsMayLieAnywhere) {
  Result<SafetensorsFile> file = Open(FileOf(
      R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"c":{"dtype":"F32","shape":[7,0],"data_offsets":[4,4]}})",
      4));
  ASSERT_OK(file);
  EXPECT_EQ(file->Find("c").value().shape, (Shape{7, 0}));
  ASSERT_OK(Open(FileOf("{}", 0)));
  EXPECT_TRUE(Open(FileOf("{}", 0))->tensors().empty());
}

TEST_F(SafetensorsTest, FindNamesTheNearestTensor) {
  const Status status =
      SafetensorsFile::Open(TestData("io/fp8.safetensors"))->Find("model.layer.0.weight").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("fp8.safetensors"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("did you mean \"model.layers.0.weight\""), std::string::npos)
      << status.message();
}

TEST_F(SafetensorsTest, WriteRefusesATensorGivenTwice) {
  const Tensor tensor = Tensor::Zeros(DType::kU8, {1});
  EXPECT_EQ(WriteSafetensors(folder_.path() / "x", {{"a", tensor}, {"a", tensor}}).code(),
            StatusCode::kInvalidArgument);
}

struct Hostile {
  const char* name;
  std::string content;
  const char* message;  // a part of it
};

const std::vector<Hostile>& HostileFiles() {
  static const auto& files = *new std::vector<Hostile>{
      {"empty", "", "0 bytes"},
      {"only a length", ByteString().U64(0).bytes(), "header"},
      {"half a length", std::string(3, '\0'), "3 bytes"},
      {"header longer than the file", ByteString().U64(1000).Raw("{}").bytes(), "truncated"},
      {"header beyond the limit", ByteString().U64(100'000'001).Raw("{}").bytes(), "at most"},
      {"header of 2^64 - 1", ByteString().U64(UINT64_MAX).Raw("{}").bytes(), "at most"},
      {"not JSON", FileOf("hello", 0), "header"},
      {"an array", FileOf("[]", 0), "expected an object"},
      {"half of the JSON", FileOf(R"({"t":{"dtype":"U8")", 0), "header"},
      {"text behind the JSON", FileOf("{} x", 0), "header"},
      {"invalid UTF-8", FileOf("{\"\xff\":{}}", 0), "header"},
      {"deep", FileOf(R"({"t":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}", 0),
       "deep"},
      {"duplicate tensor",
       FileOf(
           R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
           1),
       "\"t\" occurs twice"},
      {"duplicate field",
       FileOf(R"({"t":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1), "twice"},
      {"tensor is a number", FileOf(R"({"t":1})", 0), "tensor t: is integer"},
      {"no dtype", FileOf(R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1), "tensor t: dtype"},
      {"dtype is a number", FileOf(R"({"t":{"dtype":3,"shape":[1],"data_offsets":[0,1]}})", 1),
       "tensor t: dtype"},
      {"unknown dtype", FileOf(R"({"t":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1),
       "F4"},
      {"lower-case dtype", FileOf(R"({"t":{"dtype":"u8","shape":[1],"data_offsets":[0,1]}})", 1),
       "tensor t"},
      {"no shape", FileOf(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1), "tensor t: shape"},
      {"negative size", FileOf(R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
       "tensor t: shape holds -1"},
      {"two negative sizes",
       FileOf(R"({"t":{"dtype":"U8","shape":[-1,-1],"data_offsets":[0,1]}})", 1),
       "tensor t: shape"},
      {"fractional size", FileOf(R"({"t":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1),
       "tensor t: shape"},
      {"size of 2^64",
       FileOf(R"({"t":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]}})", 1),
       "tensor t: shape"},
      {"elements overflow",
       FileOf(
           R"({"t":{"dtype":"U8","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}})",
           0),
       "tensor t: shape"},
      {"bytes overflow",
       FileOf(R"({"t":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
       "tensor t: shape"},
      {"no offsets", FileOf(R"({"t":{"dtype":"U8","shape":[1]}})", 1), "tensor t: data_offsets"},
      {"one offset", FileOf(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1),
       "tensor t: data_offsets has 1"},
      {"negative offset", FileOf(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1),
       "tensor t: data_offsets"},
      {"backward offsets", FileOf(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1),
       "tensor t: data_offsets [1, 0] run backwards"},
      {"wrong dtype for the bytes",
       FileOf(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), "expected 8"},
      {"tensor beyond the data",
       FileOf(R"({"t":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 8), "truncated"},
      {"offsets near 2^63",
       FileOf(
           R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]}})",
           1),
       "tensor t"},
      {"gap at the start", FileOf(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
       "tensor t: data_offsets [1, 2] leave a gap"},
      {"gap in the middle",
       FileOf(
           R"({"s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
           3),
       "tensor t: data_offsets [2, 3] leave a gap"},
      {"overlap",
       FileOf(
           R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           3),
       "tensor t: data_offsets [1, 3] overlap tensor s"},
      {"same bytes twice",
       FileOf(
           R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
           2),
       "overlap"},
      {"bytes behind the data",
       FileOf(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2), "2 bytes of data"},
      {"metadata is text", FileOf(R"({"__metadata__":"pt"})", 0), "__metadata__: is string"},
      {"metadata holds a number", FileOf(R"({"__metadata__":{"a":1}})", 0), "__metadata__"},
  };
  return files;
}

TEST_F(SafetensorsTest, HostileFilesAreRefused) {
  for (const Hostile& hostile : HostileFiles()) {
    const Result<SafetensorsFile> file = Open(hostile.content);
    ASSERT_FALSE(file.ok()) << hostile.name;
    const std::string& message = file.status().message();
    EXPECT_NE(message.find("tested.safetensors"), std::string::npos) << hostile.name << message;
    EXPECT_NE(message.find(hostile.message), std::string::npos) << hostile.name << ": " << message;
    EXPECT_LT(message.size(), 1000U) << hostile.name;
  }
}

TEST_F(SafetensorsTest, CutAtAnyLengthIsRefused) {
  const std::string whole = ReadFile(TestData("io/library.safetensors")).value();
  ASSERT_OK(Open(whole));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Open(whole.substr(0, length)).ok()) << length;
  }
}

TEST_F(SafetensorsTest, AMissingFileOrAFolderIsRefused) {
  EXPECT_EQ(SafetensorsFile::Open(folder_.path() / "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(SafetensorsFile::Open(folder_.path()).status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace octavo
