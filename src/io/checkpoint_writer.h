// Writes a checkpoint folder of known layout: every header first, then tensors in any order, then
// the folder is renamed into place.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/work_folder.h"
#include "tensor/tensor.h"

namespace octavo {

struct PlannedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

struct CheckpointWriterOptions {
  int64_t max_shard_bytes = 20'000'000'000;  // decimal, as transformers counts
  bool force = false;                        // replace an existing output
  // Go on with the files that an earlier writer of the same plan left: CorruptFile where they are
  // not there, or are others.
  bool resume = false;
};

// The plan (names, dtypes, shapes, shards) is fixed at Create; shards are filled greedily in the
// order of the plan, a tensor larger than the limit alone. One shard is model.safetensors without
// index, several are model-00001-of-0000N.safetensors with model.safetensors.index.json. Work
// happens in the work folder "<out>.unfinished"; nothing exists under `out` until Commit, and a
// writer that was killed leaves only the work folder, which the next Create replaces or resumes.
class CheckpointWriter {
 public:
  // AlreadyExists when `out` exists and force is not set.
  static Result<CheckpointWriter> Create(const std::filesystem::path& out,
                                         std::vector<PlannedTensor> plan,
                                         const CheckpointWriterOptions& options = {});
  // The same in a work folder that the caller keeps other things in and checked `out` for.
  static Result<CheckpointWriter> Create(std::shared_ptr<const WorkFolder> folder,
                                         std::vector<PlannedTensor> plan,
                                         const CheckpointWriterOptions& options = {});
  CheckpointWriter(CheckpointWriter&&) noexcept;
  CheckpointWriter& operator=(CheckpointWriter&&) noexcept;
  ~CheckpointWriter();

  // Where files that are no tensors go (config.json, tokenizer.json ...) until Commit.
  const std::filesystem::path& unfinished_folder() const;

  // Writes one planned tensor; dtype and shape must be those planned, and each is written once.
  // Threads may write different tensors.
  Status Write(std::string_view name, const TensorView& tensor);
  // Puts what was written since the last call safely on disk, and returns its names.
  Result<std::vector<std::string>> SyncWritten();
  // Tensors that an earlier writer of the same plan wrote. CorruptFile for one that is not planned.
  Status MarkWritten(const std::vector<std::string>& names);
  // Bytes of the tensors planned.
  int64_t total_bytes() const;

  // Checks that every planned tensor was written, and syncs the files. After it,
  // `unfinished_folder()` is a whole checkpoint that can be opened.
  Status Finish();
  // Renames the finished folder to `out` (with force, the old one is removed only after the new one
  // is complete).
  Status Commit();
  // Removes the work folder.
  void Abandon();

 private:
  struct State;
  explicit CheckpointWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo
