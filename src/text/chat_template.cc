#include "text/chat_template.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/unicode.h"

namespace octavo {

namespace {

constexpr int64_t kMaxTemplateBytes = int64_t{4} << 20;
constexpr int64_t kMaxConfigBytes = int64_t{64} << 20;

constexpr std::string_view kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                               "pad_token", "cls_token", "mask_token"};

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

// Each special token of tokenizer_config.json, a string or {"content": ...}.
Value SpecialTokens(const Value& config) {
  Value tokens = Value::MakeObject();
  for (std::string_view name : kSpecialTokens) {
    const Value* token = config.Find(name);
    if (token != nullptr && token->is_object()) token = token->Find("content");
    if (token != nullptr && token->is_string()) tokens.Set(name, *token);
  }
  return tokens;
}

// The text of "chat_template": a string, or the one named "default" of a list.
Result<std::string> TemplateOf(const Value& config, const std::string& what) {
  const Value* member = config.Find("chat_template");
  if (member == nullptr || member->is_null()) {
    return NotFound(what + " has no chat_template and there is no chat_template.jinja beside it");
  }
  if (member->is_string()) return member->as_string();
  if (member->is_array()) {
    for (const Value& entry : member->as_array()) {
      const Value* name = entry.Find("name");
      const Value* text = entry.Find("template");
      const bool is_default = name != nullptr && *name == Value("default");
      if (is_default && text != nullptr && text->is_string()) return text->as_string();
    }
    return NotFound(what + ": chat_template lists no template named \"default\"");
  }
  return CorruptFile(fmt::format("{}: chat_template is {}, expected a string or a list", what,
                                 member->type_name()));
}

// --- continue_final_message

// Marks the place where the text is to be cut. The space shows whether the template trims.
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";

struct Continuation {
  Value messages;     // the last one with the tag at its end
  std::string final;  // what it was without
};

// The field of the last message that is to be continued, with the tag behind it.
Result<Continuation> TagLastMessage(const Value& messages, const std::string& field) {
  Continuation continuation{messages, ""};
  Value* content = continuation.messages.as_array().back().Find(field);
  if (content != nullptr && content->is_array()) {
    Value* last_text = nullptr;
    for (Value& part : content->as_array()) {
      if (Value* text = part.Find("text")) last_text = text;
    }
    content = last_text;
  }
  if (content == nullptr || !content->is_string()) {
    return InvalidArgument(fmt::format(
        "continue_final_message: the last message has no text in \"{}\" to be continued", field));
  }
  continuation.final = content->as_string();
  *content = continuation.final + std::string(kTag);
  return continuation;
}

// The text up to the tag; where the template trimmed the tag's space it would have trimmed the
// message's, too.
Result<std::string> CutAtTag(const std::string& text, const std::string& final) {
  const std::string_view bare_tag = kTag.substr(0, kTag.size() - 1);
  const std::string_view stripped = jinja::Strip(final, jinja::Side::kBoth);
  const size_t place = text.rfind(bare_tag);
  if (place == std::string::npos || text.find(stripped) == std::string::npos) {
    return InvalidArgument(
        "continue_final_message: the chat template does not print the last message as it is");
  }
  const std::string_view before = std::string_view(text).substr(0, place);
  if (text.compare(place, kTag.size(), kTag) == 0) return std::string(before);
  return std::string(jinja::Strip(before, jinja::Side::kRight));
}

}  // namespace

struct ChatTemplate::State {
  jinja::Template compiled;
  std::string source;
  Value special_tokens;
  std::string bos_token;
  std::function<std::tm()> clock = LocalTime;
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::Load(const std::filesystem::path& folder) {
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  const std::filesystem::path template_path = folder / "chat_template.jinja";
  Value config = Value::MakeObject();
  if (std::filesystem::exists(config_path)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path, kMaxConfigBytes));
    OCTAVO_ASSIGN_OR_RETURN(config, ParseJson(text, config_path.string()));
  } else if (!std::filesystem::exists(template_path)) {
    return NotFound(fmt::format("{} has neither chat_template.jinja nor tokenizer_config.json",
                                folder.string()));
  }
  std::string source;
  std::filesystem::path path = template_path;
  if (std::filesystem::exists(template_path)) {
    OCTAVO_ASSIGN_OR_RETURN(source, ReadFile(template_path, kMaxTemplateBytes));
  } else {
    OCTAVO_ASSIGN_OR_RETURN(source, TemplateOf(config, config_path.string()));
    path = config_path;
  }
  Result<ChatTemplate> compiled = Compile(source, SpecialTokens(config));
  if (!compiled.ok()) return compiled.status().Annotate(path.string());
  return compiled;
}

Result<ChatTemplate> ChatTemplate::Compile(std::string_view source, const Value& special_tokens) {
  if (static_cast<int64_t>(source.size()) > kMaxTemplateBytes) {
    return CorruptFile(fmt::format("chat template: {} bytes, at most {} are read", source.size(),
                                   kMaxTemplateBytes));
  }
  Result<jinja::Template> compiled = jinja::Template::Compile(source);
  if (!compiled.ok()) return compiled.status().Annotate("chat template");
  auto state = std::make_unique<State>(
      State{std::move(compiled).value(), std::string(source), special_tokens, "", LocalTime});
  OCTAVO_ASSIGN_OR_RETURN(state->bos_token, special_tokens.GetString("bos_token", ""));
  return ChatTemplate(std::move(state));
}

void ChatTemplate::set_clock(std::function<std::tm()> clock) {
  state_->clock = std::move(clock);
}

const std::string& ChatTemplate::source() const {
  return state_->source;
}

const std::string& ChatTemplate::bos_token() const {
  return state_->bos_token;
}

Result<std::string> ChatTemplate::Render(const Value& messages, const Value& options) const {
  if (!messages.is_array()) {
    return InvalidArgument(
        fmt::format("a conversation must be an array of messages, not {}", messages.type_name()));
  }
  if (messages.as_array().empty()) {
    return InvalidArgument("the conversation is empty: give at least one message");
  }
  Value variables =
      state_->special_tokens.is_object() ? state_->special_tokens : Value::MakeObject();
  variables.Set("tools", nullptr);
  variables.Set("documents", nullptr);
  variables.Set("add_generation_prompt", false);
  std::string continued_field;
  if (options.is_object()) {
    for (const auto& [name, value] : options.as_object()) {
      if (name != "continue_final_message") {
        variables.Set(name, value);
      } else if (value.is_string()) {
        continued_field = value.as_string();
      } else if (value == Value(true)) {
        continued_field = "content";
      }
    }
  }
  std::optional<Continuation> continuation;
  if (!continued_field.empty()) {
    if (*variables.Find("add_generation_prompt") == Value(true)) {
      return InvalidArgument("continue_final_message and add_generation_prompt exclude each other");
    }
    if (state_->source.find(continued_field) == std::string::npos) {
      return InvalidArgument(fmt::format(
          "continue_final_message: the chat template knows no field \"{}\"", continued_field));
    }
    OCTAVO_ASSIGN_OR_RETURN(continuation, TagLastMessage(messages, continued_field));
  }
  variables.Set("messages", continuation.has_value() ? continuation->messages : messages);
  Result<jinja::Rendered> rendered = state_->compiled.Render(variables, state_->clock());
  if (!rendered.ok()) return rendered.status().Annotate("chat template");
  if (continuation.has_value()) return CutAtTag(rendered->text, continuation->final);
  return std::move(rendered->text);
}

}  // namespace octavo
