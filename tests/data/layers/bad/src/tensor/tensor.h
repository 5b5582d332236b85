#include <immintrin.h>
#include <CLI/CLI.hpp>

#include "base/base.h"
