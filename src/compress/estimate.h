// What a quantization will take, estimated before it begins: time, memory, disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/pipeline.h"
#include "compress/plan.h"
#include "octavo/quantize.h"
#include "text/dataset.h"

namespace octavo {

// Estimates, from the sizes of the largest block and from the rate of a float32 matmul that is
// timed for some milliseconds. Hidden states are held in memory where that stays within
// `options.memory_bytes` (0: half of the machine's memory). OutOfMemory when not even one block
// does.
Result<Estimate> EstimateQuantization(const QuantizeOptions& options, const QuantizationPlan& plan,
                                      const Dataset& dataset, int64_t output_bytes,
                                      const Context& context);

// Io when the file system of `out` has not as much room as the estimate says.
Status CheckDiskSpace(const std::filesystem::path& out, const Estimate& estimate);

}  // namespace octavo
