// Shapes: the sizes of a tensor's dimensions, outermost first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace octavo {

using Shape = std::vector<int64_t>;

// The number of elements; 1 for []. CorruptFile for a negative size, or for more elements than an
// int64 can count the bytes of, whatever the dtype.
Result<int64_t> CheckedElements(const Shape& shape);

// The same for shapes that were checked before.
int64_t Elements(const Shape& shape);

// "[2, 3]".
std::string ShapeString(const Shape& shape);

}  // namespace octavo
