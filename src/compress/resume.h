// What a quantization finds of an earlier run, and what it leaves for a later one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/status.h"
#include "compress/journal.h"
#include "io/work_folder.h"
#include "octavo/quantize.h"

namespace octavo {

// An error about files of an earlier run, with the remedy.
Status Unusable(const Status& status);

// Tells a folder that was moved into place from another of its name. NotFound where there is none.
Result<int64_t> Inode(const std::filesystem::path& path);

// What was stopped from outside can go on; what the input refuses cannot, and leaves nothing.
Status KeepOrRemove(const Status& status, const Journal& journal, int64_t num_blocks,
                    const WorkFolder& folder);

// The report of a run that was killed between moving its output into place and clearing up; none
// where there was no such run.
std::optional<Result<QuantizationReport>> FinishedBefore(const Journal& journal,
                                                         const WorkFolder& folder);

}  // namespace octavo
