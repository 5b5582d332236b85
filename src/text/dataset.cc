#include "text/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"

namespace octavo {

namespace {

constexpr int64_t kMaxLineBytes = int64_t{16} << 20;
constexpr int64_t kMaxTextBytes = int64_t{256} << 20;
constexpr size_t kChunkBytes = size_t{1} << 20;

// Where a row is in its file.
struct Line {
  int64_t offset = 0;
  int32_t bytes = 0;
  int32_t number = 0;  // from 1
};

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Finds the lines that are not blank while bytes go by.
class LineFinder {
 public:
  Status Take(std::string_view chunk) {
    for (char c : chunk) {
      if (c == '\n') {
        OCTAVO_RETURN_IF_ERROR(End());
      } else {
        blank_ = blank_ && IsBlank(c);
        if (++bytes_ > kMaxLineBytes) {
          return CorruptFile(
              fmt::format("line {} is longer than {} bytes: is this a JSON-lines file?", number_,
                          kMaxLineBytes));
        }
      }
    }
    return OkStatus();
  }

  Status End() {
    if (!blank_) {
      lines_.push_back({offset_, static_cast<int32_t>(bytes_), number_});
    }
    offset_ += bytes_ + 1;
    bytes_ = 0;
    blank_ = true;
    if (number_ == INT32_MAX) return CorruptFile("more than 2^31 lines");
    ++number_;
    return OkStatus();
  }

  std::vector<Line> TakeLines() { return std::move(lines_); }

 private:
  std::vector<Line> lines_;
  int64_t offset_ = 0;  // of the line that is open
  int64_t bytes_ = 0;
  int32_t number_ = 1;
  bool blank_ = true;
};

Result<std::vector<Line>> FindLines(std::ifstream& file) {
  LineFinder finder;
  std::string chunk(kChunkBytes, '\0');
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    OCTAVO_RETURN_IF_ERROR(
        finder.Take(std::string_view(chunk).substr(0, static_cast<size_t>(file.gcount()))));
  }
  if (file.bad()) return IoError("reading failed");
  OCTAVO_RETURN_IF_ERROR(finder.End());
  return finder.TakeLines();
}

Result<std::string> ReadLine(std::ifstream& file, const Line& line) {
  std::string text(static_cast<size_t>(line.bytes), '\0');
  file.clear();
  file.seekg(line.offset);
  file.read(text.data(), line.bytes);
  if (file.gcount() != line.bytes) return IoError("the file changed while it was read");
  return text;
}

Status NeedsTokenizer(std::string_view key) {
  return InvalidArgument(
      fmt::format("\"{}\" must be tokenized, and there is no tokenizer.json in "
                  "the model folder; give rows with \"input_ids\"",
                  key));
}

Result<std::vector<TokenId>> IdsOf(const Value& input_ids) {
  if (!input_ids.is_array()) {
    return InvalidArgument(
        fmt::format("\"input_ids\" is {}, expected a list of integers", input_ids.type_name()));
  }
  std::vector<TokenId> ids;
  ids.reserve(input_ids.as_array().size());
  for (const Value& id : input_ids.as_array()) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) {
      return InvalidArgument(
          fmt::format("\"input_ids\" holds {}, expected integers from 0 to 2147483647",
                      id.is_number() ? WriteJson(id) : std::string(id.type_name())));
    }
    ids.push_back(static_cast<TokenId>(id.as_int()));
  }
  return ids;
}

const Value* Present(const Value& row, std::string_view key) {
  const Value* member = row.Find(key);
  return member == nullptr || member->is_null() ? nullptr : member;
}

Result<std::vector<TokenId>> EncodeRow(const Value& row, const Tokenizer* tokenizer,
                                       const ChatTemplate* chat_template) {
  if (const Value* ids = Present(row, "input_ids")) return IdsOf(*ids);
  if (const Value* messages = Present(row, "messages")) {
    if (tokenizer == nullptr) return NeedsTokenizer("messages");
    if (chat_template == nullptr) {
      return InvalidArgument(
          "\"messages\" needs a chat template, and the model folder has none; give rows with "
          "\"text\" or \"input_ids\"");
    }
    Value options = Value::MakeObject();
    if (const Value* tools = Present(row, "tools")) options.Set("tools", *tools);
    return EncodeChat(*tokenizer, *chat_template, *messages, options);
  }
  if (const Value* text = Present(row, "text")) {
    if (tokenizer == nullptr) return NeedsTokenizer("text");
    if (!text->is_string()) {
      return InvalidArgument(fmt::format("\"text\" is {}, expected a string", text->type_name()));
    }
    return EncodeText(*tokenizer, text->as_string());
  }
  return InvalidArgument("a row needs \"messages\", \"text\" or \"input_ids\"");
}

Result<std::vector<TokenId>> ReadRow(std::ifstream& file, const Line& line,
                                     const Tokenizer* tokenizer,
                                     const ChatTemplate* chat_template) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadLine(file, line));
  OCTAVO_ASSIGN_OR_RETURN(const Value row, ParseJson(text, "row"));
  if (!row.is_object()) {
    return InvalidArgument(fmt::format("a row is {}, expected an object", row.type_name()));
  }
  return EncodeRow(row, tokenizer, chat_template);
}

void AddSample(std::vector<TokenId> ids, int64_t max_length, Dataset* dataset) {
  if (ids.empty()) {
    ++dataset->skipped;
    return;
  }
  if (static_cast<int64_t>(ids.size()) > max_length) {
    ids.resize(static_cast<size_t>(max_length));
    ids.shrink_to_fit();
    ++dataset->truncated;
  }
  dataset->tokens += static_cast<int64_t>(ids.size());
  dataset->samples.push_back(std::move(ids));
}

// The places of the rows that are taken, in order.
std::vector<int64_t> ChooseRows(int64_t rows, const DatasetOptions& options) {
  std::vector<int64_t> order;
  if (options.shuffle) {
    order = Rng(options.seed).Permutation(rows);
  } else {
    order.resize(static_cast<size_t>(std::min(rows, options.num_samples)));
    std::iota(order.begin(), order.end(), int64_t{0});
  }
  order.resize(static_cast<size_t>(std::min(rows, options.num_samples)));
  return order;
}

Result<Dataset> ReadText(const std::filesystem::path& path, const DatasetOptions& options,
                         const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return NeedsTokenizer(".txt").Annotate(path.string());
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTextBytes));
  Result<std::vector<TokenId>> ids = EncodeText(*tokenizer, text);
  if (!ids.ok()) return ids.status().Annotate(path.string());
  const auto size = static_cast<int64_t>(ids->size());
  Dataset dataset;
  dataset.rows = (size + options.max_length - 1) / options.max_length;
  for (int64_t piece : ChooseRows(dataset.rows, options)) {
    const int64_t begin = piece * options.max_length;
    const int64_t end = std::min(begin + options.max_length, size);
    AddSample(std::vector<TokenId>(ids->begin() + begin, ids->begin() + end), options.max_length,
              &dataset);
  }
  return dataset;
}

}  // namespace

Result<std::vector<TokenId>> EncodeChat(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template, const Value& messages,
                                        const Value& options) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, chat_template.Render(messages, options));
  return tokenizer.Encode(text, false);
}

Result<std::vector<TokenId>> EncodeText(const Tokenizer& tokenizer, std::string_view text) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<TokenId> ids, tokenizer.Encode(text, true));
  const std::optional<TokenId> bos = tokenizer.bos_added_by_encode();
  if (bos.has_value() && ids.size() >= 2 && ids[0] == *bos && ids[1] == *bos) {
    ids.erase(ids.begin());
  }
  return ids;
}

Result<Dataset> ReadDataset(const std::filesystem::path& path, const DatasetOptions& options,
                            const Tokenizer* tokenizer, const ChatTemplate* chat_template) {
  if (options.num_samples < 1 || options.max_length < 1) {
    return InvalidArgument(fmt::format("{} samples of {} tokens: both must be at least 1",
                                       options.num_samples, options.max_length));
  }
  if (!std::filesystem::is_regular_file(path)) {
    return NotFound(fmt::format("{}: no such file of calibration data", path.string()));
  }
  if (path.extension() == ".txt") return ReadText(path, options, tokenizer);
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError(fmt::format("{} cannot be opened", path.string()));
  Result<std::vector<Line>> lines = FindLines(file);
  if (!lines.ok()) return lines.status().Annotate(path.string());
  if (lines->empty()) return InvalidArgument(fmt::format("{} has no rows", path.string()));
  Dataset dataset;
  dataset.rows = static_cast<int64_t>(lines->size());
  for (int64_t row : ChooseRows(dataset.rows, options)) {
    const Line& line = (*lines)[static_cast<size_t>(row)];
    Result<std::vector<TokenId>> ids = ReadRow(file, line, tokenizer, chat_template);
    if (!ids.ok()) {
      return ids.status().Annotate(fmt::format("{}, line {}", path.string(), line.number));
    }
    AddSample(std::move(ids).value(), options.max_length, &dataset);
  }
  return dataset;
}

}  // namespace octavo
