// Data sets in CSV: a header, then a record a row; quoted fields may hold line ends. As RFC 4180
// has it, and where files do not keep to that, as Python's csv module reads them: a quote inside a
// field that does not begin with one is a character, and so is what follows a closing quote.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/dataset_reader.h"
#include "text/line_reader.h"

namespace octavo {

namespace {

constexpr size_t kMaxColumns = 4096;

// One record after another; blank lines are none.
class CsvRecords {
 public:
  explicit CsvRecords(LineReader lines) : lines_(std::move(lines)) {}

  // False behind the last record. CorruptFile, naming the line, for a quote that is never closed
  // and too many fields.
  Result<bool> Next() {
    fields_.clear();
    std::string record;
    do {
      record.clear();
      OCTAVO_ASSIGN_OR_RETURN(const bool more, lines_.Append(record));
      if (!more) return false;
    } while (record.find_first_not_of(" \t\r") == std::string::npos);
    begin_ = lines_.number();
    state_ = State::kFieldBegins;
    field_.clear();
    size_t at = 0;
    while (true) {
      OCTAVO_RETURN_IF_ERROR(Split(record, at));
      if (state_ != State::kQuoted) break;
      at = record.size();
      record += '\n';
      const Result<bool> more = lines_.Append(record);
      if (more.ok() && *more) continue;
      const std::string open =
          fmt::format("line {}: a quote is opened in this record and not closed", begin_);
      return more.ok() ? CorruptFile(open) : more.status().Annotate(open);
    }
    return true;
  }

  const std::vector<std::string>& fields() const { return fields_; }
  int64_t begin() const { return begin_; }  // the line

 private:
  enum class State { kFieldBegins, kPlain, kQuoted, kClosed };

  // Takes record[at..]; the last field ends with it unless a quote is open.
  Status Split(std::string_view record, size_t at) {
    for (; at < record.size(); ++at) {
      const char c = record[at];
      if (state_ == State::kQuoted) {
        if (c == '"') {
          state_ = State::kClosed;
        } else {
          field_ += c;
        }
      } else if (c == ',') {
        OCTAVO_RETURN_IF_ERROR(EndField());
      } else if (c == '"' && state_ != State::kPlain) {
        if (state_ == State::kClosed) field_ += '"';
        state_ = State::kQuoted;
      } else if (c == '\r' && at + 1 == record.size()) {
        break;
      } else {
        field_ += c;
        state_ = State::kPlain;
      }
    }
    return state_ == State::kQuoted ? OkStatus() : EndField();
  }

  Status EndField() {
    if (fields_.size() == kMaxColumns) {
      return CorruptFile(fmt::format("line {}: more than {} fields", begin_, kMaxColumns));
    }
    fields_.push_back(std::exchange(field_, {}));
    state_ = State::kFieldBegins;
    return OkStatus();
  }

  LineReader lines_;
  std::vector<std::string> fields_;
  std::string field_;  // the one that is open
  State state_ = State::kFieldBegins;
  int64_t begin_ = 0;
};

class Csv : public DatasetReader {
 public:
  Csv(CsvRecords records, std::vector<std::string> columns)
      : records_(std::move(records)), columns_(std::move(columns)) {}

  Result<bool> Next() override {
    OCTAVO_ASSIGN_OR_RETURN(const bool more, records_.Next());
    if (more && records_.fields().size() != columns_.size()) {
      return CorruptFile(fmt::format("line {}: {} fields, but the header names {}",
                                     records_.begin(), records_.fields().size(), columns_.size()));
    }
    return more;
  }
  Result<Value> Row() const override {
    Value::Object row;
    for (size_t i = 0; i < columns_.size(); ++i) {
      row.emplace_back(columns_[i], records_.fields()[i]);
    }
    return Value(std::move(row));
  }
  std::string Place() const override { return fmt::format("line {}", records_.begin()); }

 private:
  CsvRecords records_;
  std::vector<std::string> columns_;
};

}  // namespace

Result<std::unique_ptr<DatasetReader>> OpenCsv(const std::filesystem::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  CsvRecords records{LineReader(std::move(source))};
  OCTAVO_ASSIGN_OR_RETURN(const bool any, records.Next());
  if (!any) return InvalidArgument("is empty; a CSV file begins with a header");
  std::vector<std::string> columns = records.fields();
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    if (std::find(columns.begin(), column, *column) != column) {
      return CorruptFile(fmt::format("the header names {} twice", JsonString(*column)));
    }
  }
  std::unique_ptr<DatasetReader> reader =
      std::make_unique<Csv>(std::move(records), std::move(columns));
  return reader;
}

}  // namespace octavo
