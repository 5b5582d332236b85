// Data sets in JSON: an object a line, or an array of objects.
#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "text/dataset_reader.h"
#include "text/line_reader.h"

namespace octavo {

namespace {

constexpr int64_t kMaxArrayBytes = int64_t{256} << 20;
constexpr std::string_view kBlanks = " \t\r\n";

Result<Value> CheckedRow(Value row) {
  if (row.is_object()) return row;
  return InvalidArgument(fmt::format("a row is {}, expected an object", row.type_name()));
}

class JsonLines : public DatasetReader {
 public:
  explicit JsonLines(LineReader lines) : lines_(std::move(lines)) {}

  Result<bool> Next() override {
    while (true) {
      line_.clear();
      OCTAVO_ASSIGN_OR_RETURN(const bool more, lines_.Append(line_));
      if (!more) return false;
      if (line_.find_first_not_of(kBlanks) != std::string::npos) return true;
    }
  }
  Result<Value> Row() const override {
    OCTAVO_ASSIGN_OR_RETURN(Value row, ParseJson(line_, "row"));
    return CheckedRow(std::move(row));
  }
  std::string Place() const override { return fmt::format("line {}", lines_.number()); }

 private:
  LineReader lines_;
  std::string line_;
};

class JsonArray : public DatasetReader {
 public:
  explicit JsonArray(Value::Array rows) : rows_(std::move(rows)) {}

  Result<bool> Next() override { return next_++ < rows_.size(); }
  Result<Value> Row() const override { return CheckedRow(rows_[next_ - 1]); }
  std::string Place() const override { return fmt::format("element {}", next_); }

 private:
  Value::Array rows_;
  size_t next_ = 0;
};

// Whether the first character that is not blank opens an array.
Result<bool> BeginsArray(const std::filesystem::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  LineReader lines(std::move(source));
  std::string line;
  while (true) {
    line.clear();
    OCTAVO_ASSIGN_OR_RETURN(const bool more, lines.Append(line));
    const size_t first = line.find_first_not_of(kBlanks);
    if (!more) return false;
    if (first != std::string::npos) return line[first] == '[';
  }
}

}  // namespace

Result<std::unique_ptr<DatasetReader>> OpenJsonLines(const std::filesystem::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::unique_ptr<DatasetReader> reader =
      std::make_unique<JsonLines>(LineReader(std::move(source)));
  return reader;
}

Result<std::unique_ptr<DatasetReader>> OpenJson(const std::filesystem::path& path) {
  const Result<bool> array = BeginsArray(path);
  // A line that is too long for JSON lines may still be a whole array.
  if (array.ok() && !*array) return OpenJsonLines(path);
  OCTAVO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadAll(source, kMaxArrayBytes));
  OCTAVO_ASSIGN_OR_RETURN(Value rows, ParseJson(text, "data"));
  if (!rows.is_array()) {
    return InvalidArgument(fmt::format("is {}, expected an array of rows", rows.type_name()));
  }
  std::unique_ptr<DatasetReader> reader = std::make_unique<JsonArray>(std::move(rows.as_array()));
  return reader;
}

}  // namespace octavo
