// The calibration tokens' hidden states between two blocks: in a file of the work folder, from
// which a killed run goes on, and in memory too where there is room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "io/descriptor.h"

namespace octavo {

// Rows [tokens, width] float32. While one block is worked on, the rows that go into it are read, in
// any order and more than once, and then, if there is a next block, replaced in order by the rows
// that come out: Append must not overtake Read.
class HiddenStates {
 public:
  // Files go to `folder`. `in_memory`: rows are also held, and files only written.
  HiddenStates(std::filesystem::path folder, int64_t tokens, int64_t width, bool in_memory);

  int64_t tokens() const { return tokens_; }
  // Bytes of one file: there are at most two at a time.
  int64_t file_bytes() const;

  // Goes on with the rows that an earlier run left as input of `block`; CorruptFile when they are
  // not there in full.
  Status Load(int64_t block);

  // Rows [first, first + rows.size() / width) of the input of the current block.
  Status Read(int64_t first, std::span<float> rows) const;

  // The next rows of the input of the block to come.
  Status Append(std::span<const float> rows);
  // After the last Append: the rows are on disk, and are the input of `block` from now on. The
  // former input's file stays until RemoveOthers.
  Status Advance(int64_t block);
  // Removes the files that are not the current input's.
  Status RemoveOthers() const;

 private:
  std::filesystem::path FileOf(int64_t block) const;

  std::filesystem::path folder_;
  int64_t tokens_;
  int64_t width_;
  bool in_memory_;
  std::vector<float> rows_;  // of the current input, when in memory
  int64_t block_ = -1;       // whose input the rows are
  std::optional<Descriptor> current_;
  std::optional<Descriptor> next_;
  int64_t appended_ = 0;  // rows
};

}  // namespace octavo
