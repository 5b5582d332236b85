#include "text/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/rng.h"
#include "text/byte_source.h"
#include "text/dataset_reader.h"
#include "text/dataset_row.h"

namespace octavo {

namespace {

constexpr int64_t kMaxTextBytes = int64_t{256} << 20;

// Whether there was anything to cut.
bool Cut(std::vector<TokenId>& ids, int64_t max_length) {
  if (static_cast<int64_t>(ids.size()) <= max_length) return false;
  ids.resize(static_cast<size_t>(max_length));
  ids.shrink_to_fit();
  return true;
}

void AddSample(std::vector<TokenId> ids, Dataset& dataset) {
  if (ids.empty()) {
    ++dataset.skipped;
    return;
  }
  dataset.tokens += static_cast<int64_t>(ids.size());
  dataset.samples.push_back(std::move(ids));
}

// The places of the rows that are taken, in order.
std::vector<int64_t> ChooseRows(int64_t rows, const DatasetOptions& options) {
  std::vector<int64_t> order;
  if (options.shuffle) {
    order = Rng(options.seed).Permutation(rows);
  } else {
    order.resize(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), int64_t{0});
  }
  order.erase(order.begin(), order.begin() + std::min(rows, options.skip));
  order.resize(std::min(order.size(), static_cast<size_t>(options.num_samples)));
  return order;
}

Result<Dataset> ReadText(const std::filesystem::path& path, const DatasetOptions& options,
                         const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) {
    return InvalidArgument(
        "a text must be tokenized, and there is no tokenizer.json in the model folder");
  }
  OCTAVO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadAll(source, kMaxTextBytes));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, EncodeText(*tokenizer, text));
  const auto size = static_cast<int64_t>(ids.size());
  Dataset dataset;
  dataset.rows = (size + options.max_length - 1) / options.max_length;
  for (int64_t piece : ChooseRows(dataset.rows, options)) {
    const int64_t begin = piece * options.max_length;
    const int64_t end = std::min(begin + options.max_length, size);
    AddSample({ids.begin() + begin, ids.begin() + end}, dataset);
  }
  return dataset;
}

Result<int64_t> CountRows(const std::filesystem::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetReader> reader, OpenDataset(path));
  int64_t rows = 0;
  while (true) {
    Result<bool> more = reader->Next();
    if (!more.ok()) return more.status().Annotate(path.string());
    if (!*more) return rows;
    ++rows;
  }
}

// Calls `take(place in the order, row)` for each row of `order`, in the order of the file.
Status VisitRows(const std::filesystem::path& path, const std::vector<int64_t>& order,
                 const std::function<Status(size_t, const Value&)>& take) {
  std::vector<size_t> places(order.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::sort(places.begin(), places.end(), [&](size_t a, size_t b) { return order[a] < order[b]; });
  OCTAVO_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetReader> reader, OpenDataset(path));
  int64_t read = 0;  // rows
  for (const size_t place : places) {
    for (; read <= order[place]; ++read) {
      Result<bool> more = reader->Next();
      if (!more.ok()) return more.status().Annotate(path.string());
      if (!*more) return IoError(fmt::format("{} changed while it was read", path.string()));
    }
    const Result<Value> row = reader->Row();
    const Status status = row.ok() ? take(place, *row) : row.status();
    if (!status.ok()) {
      return status.Annotate(fmt::format("{}, {}", path.string(), reader->Place()));
    }
  }
  return OkStatus();
}

// Reads the file twice, so that no more of it need be in memory than the samples.
Result<Dataset> ReadRows(const std::filesystem::path& path, const DatasetOptions& options,
                         const Tokenizer* tokenizer, const ChatTemplate* chat_template) {
  Dataset dataset;
  OCTAVO_ASSIGN_OR_RETURN(dataset.rows, CountRows(path));
  if (dataset.rows == 0) return InvalidArgument(fmt::format("{} has no rows", path.string()));
  const std::vector<int64_t> order = ChooseRows(dataset.rows, options);
  std::vector<std::vector<TokenId>> chosen(order.size());
  OCTAVO_RETURN_IF_ERROR(VisitRows(path, order, [&](size_t place, const Value& row) -> Status {
    OCTAVO_ASSIGN_OR_RETURN(chosen[place], EncodeRow(row, tokenizer, chat_template));
    if (Cut(chosen[place], options.max_length)) ++dataset.truncated;
    return OkStatus();
  }));
  for (std::vector<TokenId>& ids : chosen) AddSample(std::move(ids), dataset);
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
  Dataset dataset;
  if (!std::filesystem::is_regular_file(path)) {
    return NotFound(fmt::format("{}: no such file of calibration data", path.string()));
  }
  const auto unpacked = path.extension() == ".gz" ? path.stem() : path.filename();
  if (unpacked.extension() != ".txt") {
    OCTAVO_ASSIGN_OR_RETURN(dataset, ReadRows(path, options, tokenizer, chat_template));
  } else {
    Result<Dataset> text = ReadText(path, options, tokenizer);
    if (!text.ok()) return text.status().Annotate(path.string());
    dataset = std::move(text).value();
  }
  if (options.skip >= dataset.rows) {
    return InvalidArgument(fmt::format("{}: of its {} rows none is behind the first {}",
                                       path.string(), dataset.rows, options.skip));
  }
  if (dataset.samples.empty()) {
    return InvalidArgument(fmt::format("{}: none of the {} rows that were taken has a token in it",
                                       path.string(), dataset.skipped));
  }
  return dataset;
}

}  // namespace octavo
