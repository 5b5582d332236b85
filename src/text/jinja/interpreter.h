// Runs a parsed template.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace octavo::jinja {

struct Rendered {
  std::string text;
  // What {% generation %} enclosed: [begin, end) in bytes of the text.
  std::vector<std::pair<int64_t, int64_t>> generation_spans;
};

// A compiled template. Rendering changes nothing in it, so threads may share it.
class Template {
 public:
  // CorruptFile or Unsupported with line and statement.
  static Result<Template> Compile(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `variables` is an object, `now` what strftime_now tells. InvalidArgument or Unsupported with
  // line and statement.
  Result<Rendered> Render(const octavo::Value& variables, const std::tm& now,
                          const Limits& limits = {}) const;

 private:
  struct State;
  explicit Template(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::jinja
