// A field of a task's configuration that is asked of each document: a column's name, a Jinja
// template, or a list that is the same for all.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

class DocField {
 public:
  // doc_to_text and doc_to_target: a template's value is the text it renders.
  static Result<DocField> Text(const Value& config);
  // doc_to_choice: a template is one expression in {{ }}, and its value is that of the expression.
  static Result<DocField> List(const Value& config);
  DocField(DocField&&) noexcept;
  DocField& operator=(DocField&&) noexcept;
  ~DocField();

  // InvalidArgument where a template prints a column that the document lacks.
  Result<Value> Of(const Value& doc) const;

 private:
  struct State;
  explicit DocField(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo
