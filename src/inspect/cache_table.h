// What a quantized cache is, and what it saves.
#pragma once

#include "inspect/inspection.h"
#include "inspect/table.h"

namespace octavo {

// A row for keys, values and, where they are quantized, queries: what is declared, of how many
// modules, the range of their scales (of a checkpoint; none of a plan), and the bytes that a token
// takes, as stored and in bfloat16. No row where no cache is declared.
Table CacheTable(const Inspection& inspection);

}  // namespace octavo
