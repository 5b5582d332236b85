// Each component alone, and small tokenizers made of them, against what the tokenizers library
// gives.
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "text/components/component.h"
#include "unit/text/tokenizer_vectors.h"

namespace octavo {
namespace {

std::filesystem::path Components(std::string_view name) {
  return TokenizerFolder("components") / name;
}

// Compares, unless the row has no such text (the library failed there).
void ExpectText(const Value* expected, const std::string& actual) {
  if (expected == nullptr || !expected->is_string()) return;
  EXPECT_EQ(expected->as_string(), actual);
}

void ExpectRow(const Tokenizer& tokenizer, const Value& row) {
  if (const Value* first = row.Find("first")) {
    for (const bool special : {false, true}) {
      const Encoding pair =
          tokenizer.EncodePair(first->as_string(), row.Find("second")->as_string(), special)
              .value();
      ExpectEncoding(pair, *row.Find(special ? "special" : "plain"));
    }
    return;
  }
  const std::string& text = row.Find("text")->as_string();
  ExpectEncoding(tokenizer.EncodeWithOffsets(text, false).value(), row);
  const Encoding special = tokenizer.EncodeWithOffsets(text, true).value();
  if (const Value* expected = row.Find("special")) ExpectEncoding(special, *expected);
  ExpectText(row.Find("decode_keep"), tokenizer.Decode(special.ids, false));
  // The library skips no special token whose normalized text differs from its content; we do.
  const Value* skip = row.Find("decode_skip");
  const bool has_normalized_special = tokenizer.TokenToId("<S>").has_value();
  if (!has_normalized_special || text.find_first_of("sS") == text.npos) {
    ExpectText(skip, tokenizer.Decode(special.ids, true));
  }
}

TEST(TokenizerComponents, SmallTokenizers) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(TokenizerFolder("components"))) {
    if (entry.is_directory()) folders.insert(entry.path().filename());
  }
  EXPECT_EQ(folders.size(), 19u);
  int64_t rows = 0;
  for (const std::string& name : folders) {
    SCOPED_TRACE(name);
    Result<Tokenizer> tokenizer = Tokenizer::Load(Components(name));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (const Value& row : ReadRows(Components(name) / "vectors.jsonl")) {
      SCOPED_TRACE(WriteJson(row).substr(0, 200));
      ExpectRow(*tokenizer, row);
      ++rows;
    }
  }
  EXPECT_EQ(rows, 1120);
}

// Whether the component is one that is not there yet, and says so.
template <typename T>
bool IsMissing(const Result<std::unique_ptr<T>>& made) {
  if (made.ok()) return false;
  EXPECT_EQ(made.status().code(), StatusCode::kUnsupported) << made.status().message();
  return true;
}

TEST(TokenizerComponents, Normalizers) {
  int64_t cases = 0;
  for (const Value& row : ReadRows(Components("normalizers.jsonl"))) {
    SCOPED_TRACE(WriteJson(*row.Find("config")));
    const auto normalizer = MakeNormalizer(*row.Find("config"));
    if (IsMissing(normalizer)) continue;
    const auto expect = [&](const std::string& input, const std::string& output) {
      AlignedText text(input, 0);
      EXPECT_TRUE((*normalizer)->Normalize(text).ok());
      EXPECT_EQ(text.bytes(), output) << input;
      ++cases;
    };
    for (const Value& pair : row.Find("changed")->as_array()) {
      expect(pair.as_array()[0].as_string(), pair.as_array()[1].as_string());
    }
    for (const Value& text : row.Find("unchanged")->as_array()) {
      expect(text.as_string(), text.as_string());
    }
  }
  EXPECT_GE(cases, 1661);
}

TEST(TokenizerComponents, PreTokenizers) {
  int64_t cases = 0;
  for (const Value& row : ReadRows(Components("pre_tokenizers.jsonl"))) {
    SCOPED_TRACE(WriteJson(*row.Find("config")));
    const auto pre_tokenizer = MakePreTokenizer(*row.Find("config"));
    if (IsMissing(pre_tokenizer)) continue;
    for (const Value& item : row.Find("cases")->as_array()) {
      const std::string& input = item.as_array()[0].as_string();
      if (input.empty()) continue;  // an empty text never reaches a pre-tokenizer
      PiecedText text = {AlignedText(input, 0), {{0, input.size()}}};
      EXPECT_TRUE((*pre_tokenizer)->PreTokenize(text).ok());
      Value::Array pieces;
      for (const ByteRange& piece : text.pieces) {
        const Origin origin = text.text.OriginOf(piece.begin, piece.end);
        pieces.push_back(Value::Array{text.text.bytes(piece), origin.begin, origin.end});
      }
      EXPECT_EQ(WriteJson(item.as_array()[1]), WriteJson(pieces)) << input;
      ++cases;
    }
  }
  EXPECT_GE(cases, 1320);
}

std::string DecodeAll(const Decoder& decoder, const Value::Array& tokens, bool streaming) {
  bool by_bytes = false;
  DecodeMode mode = {.streaming = streaming, .by_bytes = &by_bytes};
  DecodeStages stages;
  decoder.AddStages(mode, stages);
  std::vector<std::string> current;
  for (const Value& token : tokens) current.push_back(token.as_string());
  for (const auto& stage : stages) {
    std::vector<std::string> next;
    for (std::string& token : current) stage->Push(std::move(token), next);
    stage->Finish(next);
    current = std::move(next);
  }
  std::string out;
  for (const std::string& token : current) out += token;
  return out;
}

TEST(TokenizerComponents, Decoders) {
  int64_t cases = 0;
  for (const Value& row : ReadRows(Components("decoders.jsonl"))) {
    SCOPED_TRACE(WriteJson(*row.Find("config")));
    const auto decoder = MakeDecoder(*row.Find("config"));
    if (IsMissing(decoder)) continue;
    for (const Value& item : row.Find("cases")->as_array()) {
      const Value::Array& tokens = item.as_array()[0].as_array();
      const Value& expected = item.as_array()[1];
      if (!expected.is_string()) continue;  // the library crashes there
      EXPECT_EQ(DecodeAll(**decoder, tokens, false), expected.as_string()) << WriteJson(tokens);
      // Bytes that are no UTF-8 are for the stream to deal with.
      if (expected.as_string().find("\xEF\xBF\xBD") == std::string::npos) {
        EXPECT_EQ(DecodeAll(**decoder, tokens, true), expected.as_string()) << WriteJson(tokens);
      }
      ++cases;
    }
  }
  EXPECT_GE(cases, 598);
}

// A piece of random parts of stories, cut and not cut.
TEST(TokenizerComponents, CutPiecesGiveTheTokensOfTheWhole) {
  const auto path = TokenizerFolder("stories260k") / "tokenizer.json";
  const Value json = ParseJson(ReadFile(path).value(), "stories260k").value();
  const auto model = std::move(MakeTokenModel(*json.Find("model"))).value();
  const std::string_view words[] = {"▁once", "▁upon", "▁", "▁a", "time", "the", "▁▁", "s", "e",
                                    "ing",   "\n",    "é", "你", ".",    ",▁",  "\"", "T", "0"};
  Rng rng(7);
  int64_t num_parts = 0;
  for (int i = 0; i < 200; ++i) {
    std::string piece;
    while (piece.size() < 300) piece += words[rng.Below(std::size(words))];
    std::vector<ModelToken> whole;
    model->Tokenize(piece, whole);
    std::vector<ByteRange> parts;
    model->Cut(piece, parts);
    num_parts += static_cast<int64_t>(parts.size());
    std::vector<ModelToken> joined;
    for (const ByteRange& part : parts) {
      const size_t first = joined.size();
      model->Tokenize(std::string_view(piece).substr(part.begin, part.end - part.begin), joined);
      for (size_t k = first; k < joined.size(); ++k) {
        joined[k].begin += static_cast<int32_t>(part.begin);
        joined[k].end += static_cast<int32_t>(part.begin);
      }
    }
    ASSERT_EQ(whole.size(), joined.size()) << piece;
    for (size_t k = 0; k < whole.size(); ++k) {
      EXPECT_EQ(whole[k].id, joined[k].id) << piece;
      EXPECT_EQ(whole[k].begin, joined[k].begin) << piece;
      EXPECT_EQ(whole[k].end, joined[k].end) << piece;
    }
  }
  EXPECT_GT(num_parts, 200 * 10);
}

// Files and lines of the lists agree: each .cc beside a list makes one component of it, and each
// line has its file.
TEST(TokenizerComponents, OneFileForEachLine) {
  const std::filesystem::path folder =
      std::filesystem::path(OCTAVO_SOURCE_DIR) / "src/text/components";
  for (const std::string kind : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    const std::string list = ReadFile(folder / (kind + "s.inc")).value();
    size_t lines = 0;
    for (size_t at = list.find("\nOCTAVO_COMPONENT("); at != list.npos;
         at = list.find("\nOCTAVO_COMPONENT(", at + 1)) {
      ++lines;
    }
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(kind + "_") && name.ends_with(".cc")) ++files;
    }
    EXPECT_EQ(lines, files) << kind;
  }
}

}  // namespace
}  // namespace octavo
