#include "io/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/golden_files.h"
#include "unit/io/gguf_builder.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

using testing::ByteString;
using testing::GgufBuilder;
using testing::TemporaryFolder;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ8_0 = 8;

class GgufTest : public ::testing::Test {
 protected:
  Result<GgufFile> Open(std::string_view content) {
    const auto path = folder_.path() / "tested.gguf";
    testing::WriteFile(path, content);
    return GgufFile::Open(path);
  }

  TemporaryFolder folder_;
};

std::string ValidFile(uint32_t version = 3) {
  return GgufBuilder()
      .Text("general.architecture", "llama")
      .U32("llama.block_count", 2)
      .F32("eps", 0.5F)
      .Bool("flag", true)
      .Texts("tokens", {"a", "", "ü"})
      .I32s("types", {1, -3})
      .Tensor("matrix", {3, 2}, kF32, std::string(24, '\1'))
      .Tensor("blocks", {64}, kQ8_0, std::string(68, '\2'))
      .Build(version);
}

TEST_F(GgufTest, ReadsMetadataAndTensors) {
  for (const uint32_t version : {2U, 3U}) {
    Result<GgufFile> file = Open(ValidFile(version));
    ASSERT_OK(file);
    EXPECT_EQ(file->metadata(), Value(Value::Object{
                                    {"general.architecture", "llama"},
                                    {"llama.block_count", 2},
                                    {"eps", 0.5},
                                    {"flag", true},
                                    {"tokens", Value::Array{"a", "", "ü"}},
                                    {"types", Value::Array{1, -3}},
                                }));
    ASSERT_EQ(file->tensors().size(), 2U);
    const GgufTensor& matrix = file->tensors()[0];
    EXPECT_EQ(matrix.name, "matrix");
    EXPECT_EQ(matrix.shape, (Shape{2, 3}));
    EXPECT_EQ(matrix.type->name, "F32");
    EXPECT_EQ(matrix.bytes.size(), 24U);
    EXPECT_EQ(file->tensors()[1].bytes.size(), 68U);
    file->Forget(file->tensors()[1]);
    EXPECT_EQ(file->tensors()[1].bytes[67], std::byte{2});
  }
}

TEST_F(GgufTest, ReadsEveryTypeOfMetadata) {
  ByteString bytes;
  bytes.Raw("GGUF").U32(3).U64(0).U64(10);
  bytes.String("u8").U32(0).Number(uint8_t{200});
  bytes.String("i8").U32(1).Number(int8_t{-100});
  bytes.String("u16").U32(2).Number(uint16_t{60000});
  bytes.String("i16").U32(3).Number(int16_t{-30000});
  bytes.String("i32").U32(5).Number(int32_t{-2'000'000'000});
  bytes.String("u64").U32(10).U64(uint64_t{1} << 62);
  bytes.String("huge").U32(10).U64(uint64_t{1} << 63);
  bytes.String("i64").U32(11).Number(int64_t{-1} << 62);
  bytes.String("f64").U32(12).Number(0.1);
  bytes.String("nested").U32(9).U32(9).U64(2);
  bytes.U32(7).U64(2).Raw(std::string("\1\0", 2)).U32(8).U64(1).String("x");
  Result<GgufFile> file = Open(bytes.bytes());
  ASSERT_OK(file);
  EXPECT_EQ(file->metadata(),
            Value(Value::Object{
                {"u8", 200},
                {"i8", -100},
                {"u16", 60000},
                {"i16", -30000},
                {"i32", -2'000'000'000},
                {"u64", int64_t{1} << 62},
                {"huge", 0x1p63},
                {"i64", int64_t{-1} << 62},
                {"f64", 0.1},
                {"nested", Value::Array{Value::Array{true, false}, Value::Array{"x"}}},
            }));
}

TEST_F(GgufTest, TypesHaveNamesEvenWhereNobodyDecodesThem) {
  ASSERT_NE(FindGgmlType(12), nullptr);
  EXPECT_EQ(FindGgmlType(12)->name, "Q4_K");
  EXPECT_EQ(FindGgmlType(12)->block_bytes, 144);
  EXPECT_EQ(FindGgmlType(4), nullptr);  // Q4_2, removed from ggml
  EXPECT_EQ(FindGgmlType(UINT32_MAX), nullptr);
}

// The head of a file with these counts.
ByteString Head(uint64_t tensors, uint64_t entries) {
  return ByteString().Raw("GGUF").U32(3).U64(tensors).U64(entries);
}

// One tensor `t` with 64 bytes of data behind it.
std::string OneTensor(const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  ByteString bytes = Head(1, 0).String("t").U32(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) bytes.U64(dim);
  return bytes.U32(type).U64(offset).PadTo(32).Raw(std::string(64, '\0')).bytes();
}

std::string WithAlignment(uint32_t type, uint64_t value) {
  ByteString bytes = Head(1, 1).String("general.alignment").U32(type);
  if (type == 4) bytes.U32(static_cast<uint32_t>(value));
  if (type == 10) bytes.U64(value);
  if (type == 8) bytes.String("32");
  return bytes.String("t").U32(1).U64(1).U32(kF32).U64(0).PadTo(32).Raw("1234").bytes();
}

std::string NestedArrays(int depth) {
  ByteString bytes = Head(0, 1).String("k").U32(9);
  for (int i = 0; i < depth; ++i) bytes.U32(9).U64(1);
  return bytes.U32(0).U64(1).Raw("x").bytes();
}

struct Hostile {
  const char* name;
  std::string content;
  const char* message;  // a part of it
};

const std::vector<Hostile>& HostileFiles() {
  constexpr uint64_t kHuge = UINT64_MAX;
  static const auto& files = *new std::vector<Hostile>{
      {"empty", "", "expected"},
      {"other magic", "GGML" + ValidFile().substr(4), "no GGUF file"},
      {"version 1", ByteString().Raw("GGUF").U32(1).U32(0).U32(0).bytes(), "version 1"},
      {"version 4", ByteString().Raw("GGUF").U32(4).U64(0).U64(0).bytes(), "version 4"},
      {"big-endian", ByteString().Raw("GGUF").U32(0x03000000).U64(0).U64(0).bytes(), "big-endian"},
      {"huge tensor count", Head(kHuge, 0).bytes(), "cannot fit"},
      {"huge entry count", Head(0, kHuge).bytes(), "cannot fit"},
      {"a million tensors", Head(1'000'000, 0).Raw(std::string(100, '\0')).bytes(), "cannot fit"},
      {"huge key", Head(0, 1).U64(kHuge).Raw(std::string(100, 'k')).bytes(), "metadata key 0"},
      {"key longer than the file", Head(0, 1).U64(101).Raw(std::string(100, 'k')).bytes(),
       "metadata key 0"},
      {"duplicate key", Head(0, 2).String("k").U32(0).Raw("x").String("k").U32(0).Raw("x").bytes(),
       "\"k\" occurs twice"},
      {"unknown metadata type", Head(0, 1).String("k").U32(13).Raw("x").bytes(),
       "k: unknown metadata type 13"},
      {"no boolean", Head(0, 1).String("k").U32(7).Raw("\2").bytes(), "k: 2 is no boolean"},
      {"huge string", Head(0, 1).String("k").U32(8).U64(kHuge).Raw("x").bytes(), "k: byte"},
      {"huge array", Head(0, 1).String("k").U32(9).U32(0).U64(kHuge).Raw("x").bytes(),
       "k: an array"},
      {"array longer than the file",
       Head(0, 1).String("k").U32(9).U32(12).U64(10).Raw(std::string(79, 'x')).bytes(), "k: byte"},
      {"array of an unknown type", Head(0, 1).String("k").U32(9).U32(99).U64(1).Raw("x").bytes(),
       "k: unknown metadata type 99"},
      {"arrays in arrays", NestedArrays(5), "k: arrays nested"},
      {"arrays in arrays, deep", NestedArrays(100'000), "k: arrays nested"},
      {"too many values",
       Head(0, 1).String("k").U32(9).U32(0).U64(9'000'000).Raw(std::string(9'000'000, 'x')).bytes(),
       "metadata values"},
      {"huge tensor name", Head(1, 0).U64(kHuge).Raw(std::string(40, 'x')).bytes(),
       "name of tensor 0"},
      {"duplicate tensor",
       GgufBuilder().Tensor("t", {1}, kF32, "1234").Tensor("t", {1}, kF32, "1234").Build(),
       "tensor t occurs twice"},
      {"huge number of dimensions",
       Head(1, 0).String("t").U32(UINT32_MAX).Raw(std::string(100, '\1')).bytes(),
       "tensor t: 4294967295 dimensions"},
      {"unknown type", OneTensor({1}, 4, 0), "tensor t: unknown ggml type 4"},
      {"dimension of 2^63", OneTensor({uint64_t{1} << 63}, kF32, 0), "tensor t: a dimension"},
      {"elements overflow", OneTensor({uint64_t{1} << 40, uint64_t{1} << 40}, kF32, 0),
       "tensor t: shape"},
      {"bytes overflow", OneTensor({uint64_t{1} << 62}, kF32, 0), "tensor t: shape"},
      {"rows of half a block", OneTensor({16, 4}, kQ8_0, 0), "tensor t: rows of 16"},
      {"beyond the file", OneTensor({17}, kF32, 0), "tensor t: 68 bytes"},
      {"offset beyond the file", OneTensor({1}, kF32, 96), "tensor t: 4 bytes at offset 96"},
      {"offset near 2^64", OneTensor({1}, kF32, kHuge - 31), "tensor t: 4 bytes"},
      {"offset off the grid", OneTensor({1}, kF32, 4), "tensor t: offset 4"},
      {"overlap",
       Head(2, 0)
           .String("s")
           .U32(1)
           .U64(16)
           .U32(kF32)
           .U64(0)
           .String("t")
           .U32(1)
           .U64(8)
           .U32(kF32)
           .U64(32)
           .PadTo(32)
           .Raw(std::string(64, '\0'))
           .bytes(),
       "tensor t overlaps tensor s"},
      {"alignment 0", WithAlignment(4, 0), "general.alignment is 0"},
      {"alignment 24", WithAlignment(4, 24), "general.alignment is 24"},
      {"alignment of 2^63", WithAlignment(10, uint64_t{1} << 63), "general.alignment"},
      {"alignment of 2^31", WithAlignment(4, uint64_t{1} << 31), "general.alignment"},
      {"alignment is text", WithAlignment(8, 0), "general.alignment"},
      {"alignment beyond the file", WithAlignment(4, 1 << 20), "tensor t"},
      {"tensor table without data", Head(1, 0).String("t").U32(1).U64(1).U32(0).U64(0).bytes(),
       "tensor t"},
  };
  return files;
}

TEST_F(GgufTest, HostileFilesAreRefused) {
  for (const Hostile& hostile : HostileFiles()) {
    const Result<GgufFile> file = Open(hostile.content);
    ASSERT_FALSE(file.ok()) << hostile.name;
    const std::string& message = file.status().message();
    EXPECT_NE(message.find("tested.gguf"), std::string::npos) << hostile.name << ": " << message;
    EXPECT_NE(message.find(hostile.message), std::string::npos) << hostile.name << ": " << message;
    EXPECT_LT(message.size(), 1000U) << hostile.name;
  }
}

TEST_F(GgufTest, CutAtAnyLengthIsRefused) {
  const std::string whole = ValidFile();
  ASSERT_OK(Open(whole));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Open(whole.substr(0, length)).ok()) << length;
  }
}

// Any single byte may be wrong: the file is read or refused, but never misread beyond its end
// (the sanitizers watch).
TEST_F(GgufTest, AnyFlippedByteIsSurvived) {
  const std::string whole = ValidFile();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const Result<GgufFile> file = Open(changed);
      if (!file.ok()) continue;
      size_t read = 0;
      for (const GgufTensor& tensor : file->tensors()) {
        read += static_cast<size_t>(std::count_if(tensor.bytes.begin(), tensor.bytes.end(),
                                                  [](std::byte) { return true; }));
      }
      EXPECT_LE(read, whole.size());
    }
  }
}

}  // namespace
}  // namespace octavo
