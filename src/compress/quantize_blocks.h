// The loop over the blocks: observe, modify, pack, write, feed on.
#pragma once

#include "base/context.h"
#include "base/status.h"
#include "compress/run.h"
#include "io/checkpoint_writer.h"

namespace octavo {

// Quantizes every block that the journal does not have yet, and the output head where the recipe
// asks for it. Each block is on disk before the journal says so.
Status QuantizeBlocks(const Run& run, CheckpointWriter* writer, const Context& context);

}  // namespace octavo
