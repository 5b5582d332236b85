// Every preset, as it would be for one model: bytes computed, and where it would run.
#pragma once

#include "inspect/inspection.h"
#include "inspect/table.h"

namespace octavo {

// A row for each preset, all linear layers but the head quantized: declared, bytes of the model and
// their share of the unquantized one's, bits per weight of those layers, what Octavo does with it,
// and the machines on which each engine runs it. Groups of integer weights that do not divide every
// k are made smaller; a preset that still does not fit is a note.
Table CompareSchemesTable(const Inspection& inspection);

}  // namespace octavo
