#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "octavo/octavo.h"
#include "quant/list.inc"
