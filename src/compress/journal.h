// The journal of a quantization: what was asked, and what is done, so that a killed run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "io/work_folder.h"
#include "octavo/quantize.h"

namespace octavo {

// A block that is done: its tensors are in the output's files, its report is here, and the next
// block's input lies beside the journal.
struct DoneBlock {
  std::vector<std::string> tensors;  // as the output names them
  std::vector<LayerReport> layers;
  std::optional<AttentionReport> attention;  // of a block whose cache is quantized
  double seconds = 0;                        // of work since the line before
  double cpu_seconds = 0;
};

// A text file "journal" in the work folder: a line of JSON for the request, one for each block that
// is done, in order, and one when the output is whole. A line is synced before it counts; one that
// was cut off is dropped, and its block done again.
class Journal {
 public:
  // Opens the folder's journal, or begins one. Refused, with the remedy: a journal of another
  // request (what changed is listed), a damaged one (CorruptFile), a folder that holds other things
  // than a run's. `restart` clears the folder instead.
  static Result<Journal> Open(const WorkFolder& folder, const Value& request, int64_t num_blocks,
                              bool restart, Logger& log);

  const std::vector<DoneBlock>& done() const { return done_; }
  Status Append(DoneBlock block);

  // The output is whole and about to be moved into place: `inode` is its folder's.
  Status AppendSaved(int64_t inode);
  std::optional<int64_t> saved() const { return saved_; }

 private:
  explicit Journal(std::filesystem::path path) : path_(std::move(path)) {}
  Status Parse(std::string_view text, const Value& request, int64_t num_blocks);
  Status ParseLine(const Value& line, int64_t num_blocks);
  Status AppendLine(const Value& line);

  std::filesystem::path path_;
  int64_t bytes_ = 0;  // of whole lines
  std::vector<DoneBlock> done_;
  std::optional<int64_t> saved_;
};

}  // namespace octavo
