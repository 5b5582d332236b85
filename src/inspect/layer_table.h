// Tables of what a checkpoint's modules are, how large, and why each layer has its scheme.
#pragma once

#include <string>

#include "inspect/inspection.h"
#include "inspect/table.h"

namespace octavo {

// "int4 group 128 asymmetric, input int8 token dynamic"; "dense" where nothing is declared.
std::string DeclaredText(const QuantizationScheme& declared);

// "fp8 tensor static", of something that is quantized while the model runs.
std::string ActivationText(const QuantizationArgs& args);

// A row for each distinct (scheme, shape), embeddings, norms, head and file headers with them:
// scheme, declared, shape, count, modules, bytes, bits per weight, share. Bytes add up to the size
// of the files.
Table SummaryTable(const Inspection& inspection);

// A row for each module, in the order of the model.
Table LayersTable(const Inspection& inspection);

// Every scheme of the list down to the one that computes the layer, each with what keeps it from
// doing so.
Table WhyTable(const InspectedModule& module);

}  // namespace octavo
