#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <vector>

#include "base/base.h"
#include "tensor/tensor.h"
