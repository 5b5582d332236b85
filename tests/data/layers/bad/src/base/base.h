#include <fmt/format.h>
#include <string>
