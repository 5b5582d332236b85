#include "compress/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/json.h"
#include "compress/report.h"
#include "compress/request.h"
#include "io/descriptor.h"

namespace octavo {

namespace fs = std::filesystem;

namespace {

constexpr char kName[] = "journal";
constexpr int64_t kFormat = 1;

// What a run that was killed before its journal began may have left.
bool IsOurs(const std::string& name) {
  return name == "checkpoint" || name.starts_with("hidden.") || name.starts_with(kName);
}

Status CheckOurs(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (IsOurs(name)) continue;
    return AlreadyExists(fmt::format(
        "{}: holds \"{}\", which no quantization left, and no journal; remove the folder, clear it "
        "with --restart, or choose another output",
        folder.string(), name));
  }
  return error ? SystemError(folder, "cannot list", error) : OkStatus();
}

Value ToJson(const DoneBlock& block) {
  Value json = Value::MakeObject();
  Value::Array tensors(block.tensors.begin(), block.tensors.end());
  json.Set("tensors", std::move(tensors));
  Value::Array layers;
  for (const LayerReport& layer : block.layers) layers.push_back(ToJson(layer));
  json.Set("layers", std::move(layers));
  if (block.attention) json.Set("attention", ToJson(*block.attention));
  json.Set("seconds", block.seconds);
  json.Set("cpu_seconds", block.cpu_seconds);
  return json;
}

Result<DoneBlock> ParseDoneBlock(const Value& json) {
  DoneBlock block;
  const Value* tensors = json.Find("tensors");
  const Value* layers = json.Find("layers");
  if (tensors == nullptr || !tensors->is_array() || layers == nullptr || !layers->is_array())
    return CorruptFile("a block without its tensors or layers");
  for (const Value& name : tensors->as_array()) {
    if (!name.is_string()) return CorruptFile("a tensor's name is no string");
    block.tensors.push_back(name.as_string());
  }
  for (const Value& layer : layers->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(LayerReport report, LayerReportFromJson(layer));
    block.layers.push_back(std::move(report));
  }
  if (const Value* attention = json.Find("attention")) {
    OCTAVO_ASSIGN_OR_RETURN(block.attention, AttentionReportFromJson(*attention));
  }
  OCTAVO_ASSIGN_OR_RETURN(block.seconds, json.GetDouble("seconds", 0));
  OCTAVO_ASSIGN_OR_RETURN(block.cpu_seconds, json.GetDouble("cpu_seconds", 0));
  return block;
}

Status WriteAll(const Descriptor& file, const fs::path& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(path, "cannot write");
    text.remove_prefix(static_cast<size_t>(put));
  }
  return OkStatus();
}

}  // namespace

Result<Journal> Journal::Open(const WorkFolder& folder, const Value& request, int64_t num_blocks,
                              bool restart, Logger& log) {
  Journal journal(folder.path() / kName);
  if (restart) OCTAVO_RETURN_IF_ERROR(folder.Clear());
  if (fs::exists(journal.path_)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(journal.path_));
    const Status parsed = journal.Parse(text, request, num_blocks);
    if (parsed.ok() && !journal.done_.empty()) {
      log.Info(fmt::format("{}: {} of {} blocks were done by an earlier run; going on",
                           folder.path().string(), journal.done_.size(), num_blocks));
    }
    return parsed.ok() ? Result<Journal>(std::move(journal))
                       : Result<Journal>(parsed.Annotate(journal.path_.string()));
  }
  OCTAVO_RETURN_IF_ERROR(CheckOurs(folder.path()));
  OCTAVO_RETURN_IF_ERROR(folder.Clear());
  const Value header =
      Value::Object{{"octavo_journal", kFormat}, {"blocks", num_blocks}, {"request", request}};
  const std::string line = WriteJson(header) + "\n";
  OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(journal.path_, line));
  journal.bytes_ = std::ssize(line);
  return journal;
}

Status Journal::Parse(std::string_view text, const Value& request, int64_t num_blocks) {
  const auto damaged = [](const Status& status) {
    return CorruptFile(fmt::format(
        "the journal is damaged ({}); the work of the earlier run cannot be used: give --restart "
        "to begin anew",
        status.message()));
  };
  int64_t number = 0;
  while (true) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // what follows was cut off while it was written
    const Result<Value> line = ParseJson(text.substr(0, end), fmt::format("line {}", ++number));
    if (!line.ok()) return damaged(line.status());
    if (number == 1) {
      const Value* format = line->Find("octavo_journal");
      const Value* before = line->Find("request");
      if (format == nullptr || *format != Value(kFormat) || before == nullptr)
        return damaged(CorruptFile("line 1: not the head of a journal that this program knows"));
      const std::vector<std::string> differences = RequestDifferences(*before, request);
      if (!differences.empty()) {
        return AlreadyExists(fmt::format(
            "an earlier run that was asked for other things was not finished: {}. Ask for the same "
            "again to finish it, or give --restart to begin anew",
            fmt::join(differences, "; ")));
      }
    } else {
      const Status parsed = ParseLine(*line, num_blocks);
      if (!parsed.ok()) return damaged(parsed.Annotate(fmt::format("line {}", number)));
    }
    bytes_ += static_cast<int64_t>(end) + 1;
    text.remove_prefix(end + 1);
  }
  return number > 0 ? OkStatus() : damaged(CorruptFile("it has no line"));
}

Status Journal::ParseLine(const Value& line, int64_t num_blocks) {
  if (saved_) return CorruptFile("there is more after the end");
  if (line.Find("saved") != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(saved_, line.RequireInt("saved"));
    return OkStatus();
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t index, line.RequireInt("block"));
  if (index != std::ssize(done_) || index >= num_blocks)
    return CorruptFile(
        fmt::format("block {} where block {} of {} was expected", index, done_.size(), num_blocks));
  OCTAVO_ASSIGN_OR_RETURN(DoneBlock block, ParseDoneBlock(line));
  done_.push_back(std::move(block));
  return OkStatus();
}

Status Journal::Append(DoneBlock block) {
  Value line = ToJson(block);
  line.Set("block", static_cast<int64_t>(done_.size()));
  OCTAVO_RETURN_IF_ERROR(AppendLine(line));
  done_.push_back(std::move(block));
  return OkStatus();
}

Status Journal::AppendSaved(int64_t inode) {
  OCTAVO_RETURN_IF_ERROR(AppendLine(Value::Object{{"saved", inode}}));
  saved_ = inode;
  return OkStatus();
}

Status Journal::AppendLine(const Value& line) {
  const std::string text = WriteJson(line) + "\n";
  const Descriptor file(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path_, "cannot open");
  // What an earlier write left half done goes first.
  if (ftruncate(file.get(), bytes_) != 0 || lseek(file.get(), bytes_, SEEK_SET) < 0)
    return SystemError(path_, "cannot set its size");
  OCTAVO_RETURN_IF_ERROR(WriteAll(file, path_, text));
  if (fsync(file.get()) != 0) return SystemError(path_, "cannot sync");
  bytes_ += std::ssize(text);
  return OkStatus();
}

}  // namespace octavo
