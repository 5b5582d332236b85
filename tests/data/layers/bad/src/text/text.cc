#include <pcre2.h>
#include <immintrin.h>

#include "tensor/tensor.h"
