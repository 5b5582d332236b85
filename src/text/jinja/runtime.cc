#include "text/jinja/runtime.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/value.h"

namespace octavo::jinja {

Runtime::~Runtime() {
  // First all links go, then the objects: none of them frees a long chain.
  for (const auto& object : kept_) object->Clear();
}

Status Runtime::ChargeItems(size_t count) {
  OCTAVO_RETURN_IF_ERROR(ChargeSteps(static_cast<int64_t>(count)));
  return ChargeBytes(static_cast<int64_t>(count * sizeof(Value)));
}

Status Runtime::ChargeSearch(std::string_view text, std::string_view part) {
  const size_t product = text.size() * std::min<size_t>(part.size(), size_t{1} << 20);
  return ChargeBytes(static_cast<int64_t>(text.size() + product / 16));
}

Status Runtime::TooManySteps() const {
  return InvalidArgument(fmt::format("the template takes more than {} steps", limits_.max_steps));
}

Status Runtime::TooManyBytes() const {
  return InvalidArgument(
      fmt::format("the template makes more than {} bytes of values", limits_.max_bytes));
}

}  // namespace octavo::jinja
