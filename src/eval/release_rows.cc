#include "eval/release_rows.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/json.h"

namespace octavo {

Result<Value> UnnestQuestion(Value row, std::string_view text_column) {
  const Value* question = row.Find("question");
  const Value* stem = question != nullptr ? question->Find("stem") : nullptr;
  const Value* choices = question != nullptr ? question->Find("choices") : nullptr;
  if (stem == nullptr || choices == nullptr || !choices->is_array()) return row;
  Value texts = Value::MakeArray();
  Value labels = Value::MakeArray();
  for (const Value& choice : choices->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(std::string text, choice.RequireString("text"));
    OCTAVO_ASSIGN_OR_RETURN(std::string label, choice.RequireString("label"));
    texts.as_array().emplace_back(std::move(text));
    labels.as_array().emplace_back(std::move(label));
  }
  Value lists = Value::MakeObject();
  lists.Set("text", std::move(texts));
  lists.Set("label", std::move(labels));
  Value converted = Value::MakeObject();
  if (const Value* id = row.Find("id")) converted.Set("id", *id);
  converted.Set(text_column, *stem);
  converted.Set("choices", std::move(lists));
  if (const Value* answer = row.Find("answerKey")) converted.Set("answerKey", *answer);
  return converted;
}

Result<Value> NumberLabel(Value row) {
  const Value* label = row.Find("label");
  if (label == nullptr) return row;
  const std::string text = label->is_string() ? label->as_string() : WriteJson(*label);
  const bool no = text == "0" || text == "false" || text == "False";
  const bool yes = text == "1" || text == "true" || text == "True";
  if (!no && !yes)
    return InvalidArgument(
        fmt::format("the label is {}, expected 0 or 1 (a test set has none)", text));
  row.Set("label", yes ? 1 : 0);
  return row;
}

}  // namespace octavo
