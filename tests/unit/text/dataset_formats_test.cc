// Data sets in every format, whole and damaged.
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "text/dataset.h"

namespace octavo {
namespace {

using Ids = std::vector<TokenId>;

// One gzip member; zeros pack 1000 to 1.
std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class DatasetFormatsTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  Result<Dataset> Read(const std::string& name, const std::string& text) {
    DatasetOptions options;
    options.shuffle = false;
    return ReadDataset(Write(name, text), options, nullptr, nullptr);
  }

  // With a tokenizer, and a template that shows roles and contents.
  std::vector<std::string> Texts(const std::string& name, const std::string& text) {
    const Tokenizer tokenizer = Tokenizer::Load(OCTAVO_TEST_DATA "/tokenizers/qwen3").value();
    const ChatTemplate chat =
        ChatTemplate::Compile(
            "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ tools or '' }}",
            Value())
            .value();
    DatasetOptions options;
    options.shuffle = false;
    const Result<Dataset> dataset = ReadDataset(Write(name, text), options, &tokenizer, &chat);
    if (!dataset.ok()) return {dataset.status().message()};
    std::vector<std::string> texts;
    for (const Ids& ids : dataset->samples) texts.push_back(tokenizer.Decode(ids, false));
    return texts;
  }

  testing::TemporaryFolder folder_;
};

const std::string kTwoRows = "{\"input_ids\": [1, 2]}\n{\"input_ids\": [3]}\n";
const std::vector<Ids> kTwoSamples = {{1, 2}, {3}};

TEST_F(DatasetFormatsTest, GzipIsUnpacked) {
  const Result<Dataset> dataset = Read("data.jsonl.gz", Gzip(kTwoRows));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(dataset->samples, kTwoSamples);
  // By its bytes, not its name; several members are one text, wherever they meet.
  const std::string members = Gzip(kTwoRows.substr(0, 30)) + Gzip(kTwoRows.substr(30));
  EXPECT_EQ(Read("data.jsonl", members)->samples, kTwoSamples);
}

TEST_F(DatasetFormatsTest, GzipOfManyChunksIsUnpacked) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "{\"input_ids\": [" + std::to_string(i * 7919) + "]}\n";
  const std::string packed = Gzip(text);
  EXPECT_GT(packed.size(), size_t{1} << 18);
  const DatasetOptions options = {.num_samples = 10};
  const Result<Dataset> dataset =
      ReadDataset(Write("data.jsonl.gz", packed), options, nullptr, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(dataset->rows, 60'000);
  EXPECT_EQ(dataset->samples,
            ReadDataset(Write("data.jsonl", text), options, nullptr, nullptr)->samples);
}

TEST_F(DatasetFormatsTest, ShuffledRowsComeInTheOrderOfTheSeed) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "{\"input_ids\": [" + std::to_string(i) + "]}\n";
  const auto samples = [&](const std::string& name, const std::string& bytes) {
    return ReadDataset(Write(name, bytes), {.num_samples = 9}, nullptr, nullptr)->samples;
  };
  std::string csv = "input_ids\n";
  for (int i = 0; i < 30; ++i) csv += "[" + std::to_string(i) + "]\n";
  EXPECT_EQ(samples("data.jsonl", text), samples("data.jsonl.gz", Gzip(text)));
  EXPECT_EQ(samples("data.jsonl", text), samples("data.csv", csv));
}

TEST_F(DatasetFormatsTest, CsvHasQuotedFields) {
  EXPECT_EQ(Texts("data.csv",
                  "\xEF\xBB\xBFid,text\r\n"
                  "1,plain\r\n"
                  "\r\n"
                  "2,\"a, \"\"b\"\"\nsecond line\r\nthird\"\r\n"
                  "3,\n"
                  "4,in \"the\" middle\n"
                  "5,\"only \"behind\" it\"\n"
                  "\"5\",\"last\""),
            (std::vector<std::string>{"plain", "a, \"b\"\nsecond line\r\nthird",
                                      "in \"the\" middle", "only behind\" it\"", "last"}));
}

TEST_F(DatasetFormatsTest, CsvHoldsListsAsJson) {
  EXPECT_EQ(Texts("data.csv",
                  "messages,tools\n"
                  "\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"hi\"\"}]\",\n"
                  "\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"hi\"\"}]\",[1]\n"),
            (std::vector<std::string>{"[user]hi", "[user]hi[1]"}));
  EXPECT_EQ(Read("data.csv", "input_ids,text\n\"[4, 5]\",x\n")->samples,
            (std::vector<Ids>{{4, 5}}));
}

TEST_F(DatasetFormatsTest, JsonIsAnArrayOrLines) {
  EXPECT_EQ(Read("data.json", "\n [\n{\"input_ids\": [1, 2]},\n {\"input_ids\": [3]}]\n")->samples,
            kTwoSamples);
  EXPECT_EQ(Read("data.json", kTwoRows)->samples, kTwoSamples);
  EXPECT_EQ(Read("data.json.gz", Gzip(kTwoRows))->samples, kTwoSamples);
}

TEST_F(DatasetFormatsTest, ConversationsOfShareGptAreChats) {
  EXPECT_EQ(Texts("data.json", R"([{"id": "x", "conversations": [
                {"from": "system", "value": "S"}, {"from": "human", "value": "Q"},
                {"from": "gpt", "value": "A"}, {"from": "tool", "value": "T"},
                {"role": "user", "content": "R"}]}])"),
            (std::vector<std::string>{"[system]S[user]Q[assistant]A[tool]T[user]R"}));
}

TEST_F(DatasetFormatsTest, TextMayBePacked) {
  EXPECT_EQ(Texts("story.txt.gz", Gzip("Once upon a time")),
            (std::vector<std::string>{"Once upon a time"}));
}

TEST_F(DatasetFormatsTest, BytesThatAreNoUtf8DoNotStopIt) {
  EXPECT_EQ(Texts("data.csv", "text\n\"\xFF\xC3\"\n").size(), 1U);
  EXPECT_EQ(Texts("data.txt", "\xFF\xC3(").size(), 1U);
}

struct Malformed {
  const char* name;
  std::string bytes;
  std::vector<const char*> messages;
};

std::vector<Malformed> MalformedFiles() {
  const std::string packed = Gzip(kTwoRows);
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;  // in the checksum
  const std::string many_commas(5000, ',');
  return {
      {"cut.jsonl.gz", packed.substr(0, packed.size() - 9), {"gzip data ends too early"}},
      {"header.jsonl.gz", packed.substr(0, 4), {"gzip data ends too early"}},
      {"checksum.jsonl.gz", flipped, {"gzip data is damaged (incorrect data check)"}},
      {"garbage.jsonl.gz", packed + "garbage", {"gzip data is damaged"}},
      {"noise.jsonl.gz", "\x1F\x8B\x08 and no more than this", {"gzip data"}},
      {"endless.jsonl", std::string((16 << 20) + 1, 'x'), {"line 1 is longer"}},
      {"endless.jsonl.gz", Gzip(std::string(17 << 20, ' ')), {"more than 200 times its size"}},
      {"quote.csv", "text\n\"a\n" + std::string(100, '\n'), {"line 2: a quote", "not closed"}},
      {"endless.csv",
       "text\n\"a\n" + std::string(16 << 20, 'x'),
       {"line 2: a quote", "not closed", "line 3 is longer"}},
      {"fields.csv", "id,text\n1,a\n2\n", {"line 3: 1 fields, but the header names 2"}},
      {"more.csv", "text\na,b\n", {"line 2: 2 fields, but the header names 1"}},
      {"wide.csv", many_commas + "\n", {"line 1: more than 4096 fields"}},
      {"twice.csv", "text,text\na,b\n", {"the header names \"text\" twice"}},
      {"empty.csv", "", {"is empty", "header"}},
      {"header.csv", "text\n", {"has no rows"}},
      {"columns.csv",
       "question,answer\nq,a\n",
       {"line 2", "needs \"messages\"", "has \"question\", \"answer\""}},
      {"list.csv", "messages\n[1\n", {"line 2", "\"messages\""}},
      {"object.json", "{\n\"input_ids\": [1]\n}\n", {"object.json, line 1"}},
      {"open.json", "[{\"input_ids\": [1]}", {"open.json"}},
      {"element.json", "[{\"input_ids\": [1]}, 2]", {"element 2", "a row is integer"}},
      {"nothing.json", "[]", {"has no rows"}},
      {"nothing.jsonl", "{\"input_ids\": []}\n", {"none of the 1 rows", "has a token"}},
      {"turns.jsonl", "{\"conversations\": 3}\n", {"\"conversations\" is integer"}},
      {"turn.jsonl",
       "{\"conversations\": [{\"from\": \"gpt\", \"value\": \"a\"}, {\"from\": \"gpt\"}]}\n",
       {"turn 2 of \"conversations\" has no"}},
      {"a b.parquet", "PAR1", {"tools/fetch-data convert '", "a b.parquet' -o '", "a b.jsonl'"}},
      {"renamed.jsonl", "PAR1\x15", {"is a Parquet file", "tools/fetch-data convert"}},
  };
}

TEST_F(DatasetFormatsTest, WhatCannotBeReadIsNamed) {
  EXPECT_TRUE(std::filesystem::exists(OCTAVO_SOURCE_DIR "/tools/fetch-data"));
  for (const Malformed& malformed : MalformedFiles()) {
    const Result<Dataset> dataset = Read(malformed.name, malformed.bytes);
    ASSERT_FALSE(dataset.ok()) << malformed.name;
    const std::string& message = dataset.status().message();
    EXPECT_NE(message.find(malformed.name), std::string::npos) << message;
    for (const char* part : malformed.messages) {
      EXPECT_NE(message.find(part), std::string::npos)
          << "\"" << part << "\" is not in: " << message.substr(0, 500);
    }
  }
}

// 32 MiB of blank lines, in 32 KiB.
TEST_F(DatasetFormatsTest, ABombIsStopped) {
  std::string lines(size_t{16} << 20, ' ');
  for (size_t at = 0; at < lines.size(); at += 1 << 16) lines[at] = '\n';
  const std::string member = Gzip(lines);
  std::string bomb;
  for (int i = 0; i < 2; ++i) bomb += member;
  const Result<Dataset> dataset = Read("bomb.jsonl.gz", bomb);
  ASSERT_FALSE(dataset.ok());
  EXPECT_NE(dataset.status().message().find("more than 200 times its size"), std::string::npos)
      << dataset.status().message();
}

}  // namespace
}  // namespace octavo
