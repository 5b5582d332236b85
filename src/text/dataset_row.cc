#include "text/dataset_row.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "text/dataset.h"

namespace octavo {

namespace {

Status NeedsTokenizer(std::string_view key) {
  return InvalidArgument(
      fmt::format("\"{}\" must be tokenized, and there is no tokenizer.json in "
                  "the model folder; give rows with \"input_ids\"",
                  key));
}

Result<std::vector<TokenId>> IdsOf(const Value& input_ids) {
  if (!input_ids.is_array()) {
    return InvalidArgument(
        fmt::format("\"input_ids\" is {}, expected a list of integers", input_ids.type_name()));
  }
  std::vector<TokenId> ids;
  ids.reserve(input_ids.as_array().size());
  for (const Value& id : input_ids.as_array()) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) {
      return InvalidArgument(
          fmt::format("\"input_ids\" holds {}, expected integers from 0 to 2147483647",
                      id.is_number() ? WriteJson(id) : std::string(id.type_name())));
    }
    ids.push_back(static_cast<TokenId>(id.as_int()));
  }
  return ids;
}

// A member that is a list or an object, or the JSON text of one, as CSV has it. Null where it is
// absent, null, or an empty text.
Result<Value> Structured(const Value& row, std::string_view key) {
  const Value* member = row.Find(key);
  if (member == nullptr) return Value();
  if (!member->is_string()) return *member;
  if (member->as_string().empty()) return Value();
  return ParseJson(member->as_string(), JsonString(key));
}

// ShareGPT's names of roles; any other is handed to the template as it is.
std::string_view RoleOf(std::string_view from) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRoles = {{
      {"human", "user"},
      {"gpt", "assistant"},
      {"chatgpt", "assistant"},
      {"bot", "assistant"},
  }};
  for (const auto& [name, role] : kRoles) {
    if (from == name) return role;
  }
  return from;
}

// ShareGPT's list of {"from", "value"} as messages; what already is {"role", "content"} stays.
Result<Value> MessagesOf(const Value& conversations) {
  if (!conversations.is_array()) {
    return InvalidArgument(fmt::format("\"conversations\" is {}, expected a list of turns",
                                       conversations.type_name()));
  }
  Value::Array messages;
  for (const Value& turn : conversations.as_array()) {
    if (turn.Find("role") != nullptr) {
      messages.push_back(turn);
      continue;
    }
    const Value* from = turn.Find("from");
    const Value* value = turn.Find("value");
    if (from == nullptr || value == nullptr || !from->is_string()) {
      return InvalidArgument(fmt::format(
          "turn {} of \"conversations\" has no \"from\" and \"value\"", messages.size() + 1));
    }
    messages.push_back(Value::Object{{"role", RoleOf(from->as_string())}, {"content", *value}});
  }
  return Value(std::move(messages));
}

Result<std::vector<TokenId>> EncodeMessages(std::string_view key, const Value& messages,
                                            const Value& row, const Tokenizer* tokenizer,
                                            const ChatTemplate* chat_template) {
  if (tokenizer == nullptr) return NeedsTokenizer(key);
  if (chat_template == nullptr) {
    return InvalidArgument(
        fmt::format("\"{}\" needs a chat template, and the model folder has none; give rows with "
                    "\"text\" or \"input_ids\"",
                    key));
  }
  Value options = Value::MakeObject();
  OCTAVO_ASSIGN_OR_RETURN(Value tools, Structured(row, "tools"));
  if (!tools.is_null()) options.Set("tools", std::move(tools));
  return EncodeChat(*tokenizer, *chat_template, messages, options);
}

std::string ColumnsOf(const Value& row) {
  constexpr size_t kMaxNamed = 12;
  std::string names;
  for (size_t i = 0; i < row.as_object().size(); ++i) {
    if (i == kMaxNamed) return names + " ...";
    names += (names.empty() ? "" : ", ") + JsonString(row.as_object()[i].first).substr(0, 60);
  }
  return names.empty() ? "nothing" : names;
}

}  // namespace

Result<std::vector<TokenId>> EncodeRow(const Value& row, const Tokenizer* tokenizer,
                                       const ChatTemplate* chat_template) {
  OCTAVO_ASSIGN_OR_RETURN(const Value ids, Structured(row, "input_ids"));
  if (!ids.is_null()) return IdsOf(ids);
  OCTAVO_ASSIGN_OR_RETURN(const Value messages, Structured(row, "messages"));
  if (!messages.is_null()) {
    return EncodeMessages("messages", messages, row, tokenizer, chat_template);
  }
  OCTAVO_ASSIGN_OR_RETURN(const Value conversations, Structured(row, "conversations"));
  if (!conversations.is_null()) {
    OCTAVO_ASSIGN_OR_RETURN(const Value converted, MessagesOf(conversations));
    return EncodeMessages("conversations", converted, row, tokenizer, chat_template);
  }
  const Value* text = row.Find("text");
  if (text != nullptr && !text->is_null()) {
    if (tokenizer == nullptr) return NeedsTokenizer("text");
    if (!text->is_string()) {
      return InvalidArgument(fmt::format("\"text\" is {}, expected a string", text->type_name()));
    }
    if (text->as_string().empty()) return std::vector<TokenId>();  // not a lone BOS
    return EncodeText(*tokenizer, text->as_string());
  }
  return InvalidArgument(fmt::format(
      "a row needs \"messages\", \"conversations\", \"text\" or \"input_ids\"; this one "
      "has {}",
      ColumnsOf(row)));
}

}  // namespace octavo
