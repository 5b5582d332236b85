#include "eval/doc_field.h"

#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <utility>

#include "base/json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/unicode.h"

namespace octavo {

struct DocField::State {
  Value config;
  std::optional<jinja::Template> compiled;
  bool is_json = false;  // what the template renders
};

DocField::DocField(std::unique_ptr<State> state) : state_(std::move(state)) {}
DocField::DocField(DocField&&) noexcept = default;
DocField& DocField::operator=(DocField&&) noexcept = default;
DocField::~DocField() = default;

namespace {

// Jinja drops a line end at the end of a template; lm-eval keeps it.
std::string KeepLastLineEnd(std::string source) {
  if (source.ends_with('\n')) source += "{{''}}";
  return source;
}

}  // namespace

Result<DocField> DocField::Text(const Value& config) {
  auto state = std::make_unique<State>();
  state->config = config;
  if (!config.is_string())
    return Unsupported(fmt::format("is {}, expected a column or a template", config.type_name()));
  OCTAVO_ASSIGN_OR_RETURN(state->compiled,
                          jinja::Template::Compile(KeepLastLineEnd(config.as_string())));
  return DocField(std::move(state));
}

Result<DocField> DocField::List(const Value& config) {
  auto state = std::make_unique<State>();
  state->config = config;
  if (config.is_array()) return DocField(std::move(state));
  if (!config.is_string())
    return Unsupported(fmt::format(
        "is {}, expected a list, a column or one expression in {{{{ }}}}", config.type_name()));
  std::string_view text = jinja::Strip(config.as_string(), jinja::Side::kBoth);
  if (text.starts_with("{{")) {
    if (!text.ends_with("}}") || text.find("}}") + 2 != text.size())
      return Unsupported("a template of a list must be one expression in {{ }}");
    text = text.substr(2, text.size() - 4);
    OCTAVO_ASSIGN_OR_RETURN(state->compiled,
                            jinja::Template::Compile(fmt::format("{{{{ ({}) | tojson }}}}", text)));
    state->is_json = true;
  }
  return DocField(std::move(state));
}

Result<Value> DocField::Of(const Value& doc) const {
  if (!state_->config.is_string()) return state_->config;
  const std::string& text = state_->config.as_string();
  if (const Value* column = doc.Find(text)) return *column;
  if (!state_->compiled) return InvalidArgument(fmt::format("there is no column \"{}\"", text));
  OCTAVO_ASSIGN_OR_RETURN(jinja::Rendered rendered,
                          state_->compiled->Render(doc, std::tm{}, {.print_undefined = false}));
  if (state_->is_json) return ParseJson(rendered.text, text);
  return Value(std::move(rendered.text));
}

}  // namespace octavo
