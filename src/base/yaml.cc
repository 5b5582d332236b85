#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "base/json.h"

namespace octavo {

namespace {

bool OneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  std::string digits;
  for (char c : text) {
    if (c != '_') digits += c;
  }
  std::string_view rest = digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  int base = 10;
  if (rest.starts_with("0x")) {
    base = 16;
    rest.remove_prefix(2);
  } else if (rest.size() > 1 && rest.starts_with('0')) {
    base = 8;
    rest.remove_prefix(1);
  }
  if (rest.empty() || !std::isalnum(static_cast<unsigned char>(rest[0]))) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> ParseFloat(std::string_view text) {
  if (OneOf(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"}))
    return std::numeric_limits<double>::infinity();
  if (OneOf(text, {"-.inf", "-.Inf", "-.INF"})) return -std::numeric_limits<double>::infinity();
  if (OneOf(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const bool starts_like_number =
      !rest.empty() &&
      (std::isdigit(static_cast<unsigned char>(rest[0])) || rest[0] == '.' || rest[0] == '-');
  // "1e5" without a point is text in YAML 1.1; people who write recipes mean a number.
  if (!starts_like_number || rest.find_first_of("0123456789") == std::string_view::npos)
    return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return value;
}

Value ResolvePlainScalar(const std::string& text) {
  if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return Value();
  if (OneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (OneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  if (auto integer = ParseInteger(text)) return *integer;
  if (auto number = ParseFloat(text)) return *number;
  return text;
}

// Turns yaml-cpp's parser events into a Value, counting nodes as they come: its own node tree
// accepts cycles, alias bombs and duplicate keys.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view what, const YamlLimits& limits) : what_(what), limits_(limits) {}

  Status status() const { return status_; }
  Value TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, Value(), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) return Fail(mark, "an alias that contains itself");
    const int64_t copies = it->second.nodes;
    if (nodes_ + copies > limits_.max_nodes) return TooMany(mark);
    nodes_ += copies - 1;
    Add(mark, it->second.value, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    // "?" marks a plain scalar, "!" a quoted one.
    if (tag == "!" || tag.ends_with(":str")) return Add(mark, text, anchor);
    if (!CheckTag(mark, tag)) return;
    Add(mark, ResolvePlainScalar(text), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (CheckTag(mark, tag)) Open(mark, Value::MakeArray(), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (CheckTag(mark, tag)) Open(mark, Value::MakeObject(), anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    int64_t nodes_before = 0;
    std::optional<std::string> key;
  };
  struct Anchored {
    Value value;
    int64_t nodes = 1;
  };

  bool CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" ||
        tag.starts_with("tag:yaml.org,2002:python/tuple"))
      return true;
    if (tag.starts_with("tag:yaml.org,2002:") && !tag.starts_with("tag:yaml.org,2002:python/"))
      return true;
    Fail(mark, "the tag " + tag + " is not read");
    return false;
  }

  void Fail(const YAML::Mark& mark, const std::string& reason) {
    if (!status_.ok()) return;
    status_ = CorruptFile(
        fmt::format("{}: line {}, column {}: {}", what_, mark.line + 1, mark.column + 1, reason));
    throw YAML::Exception(mark,
                          reason);  // the only way to stop yaml-cpp's parser; caught in ParseYaml
  }
  void TooMany(const YAML::Mark& mark) {
    Fail(mark, fmt::format("more than {} nodes after aliases are expanded", limits_.max_nodes));
  }

  void Open(const YAML::Mark& mark, Value value, YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      return Fail(mark, fmt::format("nested deeper than {} levels", limits_.max_depth));
    }
    open_.push_back({std::move(value), mark, anchor, nodes_, std::nullopt});
  }

  void Close() {
    OpenNode node = std::move(open_.back());
    open_.pop_back();
    const int64_t nodes = nodes_ - node.nodes_before + 1;
    Add(node.mark, std::move(node.value), node.anchor, nodes);
  }

  void Add(const YAML::Mark& mark, Value value, YAML::anchor_t anchor, int64_t nodes = 1) {
    if (++nodes_ > limits_.max_nodes) return TooMany(mark);
    if (anchor != 0) anchors_[anchor] = {value, nodes};
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.value.is_array()) {
      parent.value.as_array().push_back(std::move(value));
    } else if (!parent.key) {
      if (value.is_array() || value.is_object()) return Fail(mark, "a key is a list or a mapping");
      parent.key = value.is_string() ? value.as_string() : WriteJson(value);
      if (parent.value.Find(*parent.key) != nullptr) {
        return Fail(mark, "the key \"" + *parent.key + "\" occurs twice");
      }
    } else {
      parent.value.as_object().emplace_back(*std::move(parent.key), std::move(value));
      parent.key.reset();
    }
  }

  std::string what_;
  YamlLimits limits_;
  Status status_;
  int64_t nodes_ = 0;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Value root_;
};

bool IsScalar(const Value& value) {
  return !value.is_array() && !value.is_object();
}

std::string WriteScalar(const Value& value) {
  if (!value.is_string()) {
    if (value.is_float() && !std::isfinite(value.as_double())) {
      return std::isnan(value.as_double()) ? ".nan" : value.as_double() > 0 ? ".inf" : "-.inf";
    }
    return WriteJson(value);
  }
  const std::string& text = value.as_string();
  const bool plain = !text.empty() && ResolvePlainScalar(text).is_string() &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) {
                                   return std::isalnum(static_cast<unsigned char>(c)) ||
                                          OneOf(std::string_view(&c, 1), {"_", ".", "-", "/"});
                                 }) &&
                     text[0] != '-';
  if (plain) return text;
  // Single quotes keep backslashes, which regular expressions are full of.
  if (text.find_first_of("\n\r\t'") == std::string::npos) return "'" + text + "'";
  return JsonString(text);
}

void WriteNode(const Value& value, int depth, std::string* out) {
  const std::string pad(static_cast<size_t>(2 * depth), ' ');
  if (value.is_object() && !value.as_object().empty()) {
    for (const auto& [key, member] : value.as_object()) {
      *out += pad + WriteScalar(key) + ":";
      const bool nested =
          member.is_object() ? !member.as_object().empty()
                             : member.is_array() && !std::all_of(member.as_array().begin(),
                                                                 member.as_array().end(), IsScalar);
      *out += nested ? "\n" : " ";
      WriteNode(member, nested ? depth + 1 : 0, out);
    }
    return;
  }
  if (value.is_object()) {
    *out += "{}\n";
  } else if (value.is_array() &&
             std::all_of(value.as_array().begin(), value.as_array().end(), IsScalar)) {
    std::string items;
    for (const Value& item : value.as_array())
      items += (items.empty() ? "" : ", ") + WriteScalar(item);
    *out += pad + "[" + items + "]\n";
  } else if (value.is_array()) {
    for (const Value& item : value.as_array()) {
      std::string text;
      WriteNode(item, depth + 1, &text);
      // The first line of the item moves behind the dash.
      text.replace(0, pad.size() + 2, pad + "- ");
      *out += text;
    }
  } else {
    *out += pad + WriteScalar(value) + "\n";
  }
}

}  // namespace

Result<Value> ParseYaml(std::string_view text, std::string_view what, const YamlLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    return CorruptFile(fmt::format("{}: {} bytes of YAML, at most {} are read", what, text.size(),
                                   limits.max_bytes));
  }
  // yaml-cpp 0.7 recurses a level per bracket before it hands out an event.
  int depth = 0;
  for (char c : text) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > 10 * limits.max_depth) return CorruptFile(fmt::format("{}: nested too deep", what));
  }
  Builder builder(what, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Value();
    Value root = builder.TakeRoot();
    if (parser.HandleNextDocument(builder))
      return CorruptFile(fmt::format("{}: more than one document", what));
    return root;
  } catch (const YAML::Exception& exception) {
    if (!builder.status().ok()) return builder.status();
    return CorruptFile(fmt::format("{}: line {}, column {}: {}", what, exception.mark.line + 1,
                                   exception.mark.column + 1, exception.msg));
  }
}

std::string WriteYaml(const Value& value) {
  std::string out;
  WriteNode(value, 0, &out);
  return out;
}

}  // namespace octavo
