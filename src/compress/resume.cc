#include "compress/resume.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "compress/report.h"

namespace octavo {

Status Unusable(const Status& status) {
  if (status.ok()) return status;
  return CorruptFile(
      fmt::format("what an earlier run left cannot be used: {}; give --restart to begin anew",
                  status.message()));
}

Result<int64_t> Inode(const std::filesystem::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return NotFound(path.string() + ": not there");
  return static_cast<int64_t>(info.st_ino);
}

Status KeepOrRemove(const Status& status, const Journal& journal, int64_t num_blocks,
                    const WorkFolder& folder) {
  // About files, not about the work: their owner decides.
  const bool about_files =
      status.code() == StatusCode::kCorruptFile || status.code() == StatusCode::kAlreadyExists;
  if (about_files && !journal.done().empty()) return status;
  const bool from_outside =
      status.code() == StatusCode::kCancelled || status.code() == StatusCode::kIo;
  if (!from_outside || journal.done().empty()) {
    folder.Remove();
    return status;
  }
  return Status(
      status.code(),
      fmt::format("{}; {} of {} blocks are done and kept in {}: give the same command "
                  "again to go on",
                  status.message(), journal.done().size(), num_blocks, folder.path().string()));
}

std::optional<Result<QuantizationReport>> FinishedBefore(const Journal& journal,
                                                         const WorkFolder& folder) {
  if (!journal.saved()) return std::nullopt;
  const Result<int64_t> inode = Inode(folder.out());
  if (!inode.ok() || *inode != *journal.saved()) return std::nullopt;
  folder.Remove();
  const std::filesystem::path path = folder.out() / "quantization_report.json";
  auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  const auto json = ParseJson(*text, path.string());
  if (!json.ok()) return json.status();
  return QuantizationReportFromJson(*json);
}

}  // namespace octavo
