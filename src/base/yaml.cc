#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "base/json.h"

namespace octavo {

namespace {

bool OneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// The text without its sign, and whether that was '-'. YAML 1.1 groups digits by '_', which goes
// too unless it comes first: then the text is no number.
std::pair<std::string, bool> SplitSign(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('_')) return {std::string(text), negative};
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c != '_'; });
  return {digits, negative};
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Decimal, octal (a leading 0) and hexadecimal; nullopt for all else and beyond int64.
std::optional<int64_t> ParseInteger(std::string_view text) {
  auto [digits, negative] = SplitSign(text);
  int base = 10;
  if (digits.starts_with("0x")) {
    base = 16;
    digits.erase(0, 2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
    digits.erase(0, 1);
  }
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  if (negative) digits.insert(0, "-");
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseFloat(std::string_view text) {
  const auto [digits, negative] = SplitSign(text);
  const double sign = negative ? -1 : 1;
  if (OneOf(digits, {".inf", ".Inf", ".INF"}))
    return sign * std::numeric_limits<double>::infinity();
  if (OneOf(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  // "1e5" without a point is text in YAML 1.1; people who write recipes mean a number. "08" is
  // text.
  const bool starts_like_number =
      !digits.empty() && (IsDigit(digits[0]) || (digits[0] == '.' && IsDigit(digits.back())));
  const bool too_large_for_int = digits.size() > 18 && digits[0] != '0';
  if (!starts_like_number ||
      (digits.find_first_of(".eE") == std::string::npos && !too_large_for_int)) {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return sign * value;
}

Value ResolvePlainScalar(const std::string& text) {
  if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return Value();
  if (OneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (OneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  if (auto integer = ParseInteger(text)) return *integer;
  if (auto number = ParseFloat(text)) return *number;
  return text;
}

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

// A scalar with one of YAML's own tags; nullopt when the tag is another, or the text is not of it.
std::optional<Value> ResolveTagged(std::string_view tag, const std::string& text) {
  if (!tag.starts_with(kTagPrefix)) return std::nullopt;
  tag.remove_prefix(kTagPrefix.size());
  if (tag == "str") return text;
  Value value = ResolvePlainScalar(text);
  if (tag == "float" && value.is_number()) return value.as_double();
  const bool fits = (tag == "null" && value.is_null()) || (tag == "bool" && value.is_bool()) ||
                    (tag == "int" && value.is_int());
  return fits ? std::optional(std::move(value)) : std::nullopt;
}

// How much a value counts against the limits.
struct Extent {
  int64_t nodes = 1;
  int levels = 0;  // of lists and mappings in it, itself included
};

// A text counts as one node, and as another for every 256 bytes: aliases copy bytes too.
Extent ExtentOfScalar(const std::string& text) {
  return {.nodes = 1 + static_cast<int64_t>(text.size() / 256)};
}

// Turns yaml-cpp's parser events into a Value, counting nodes as they come: its own node tree
// accepts cycles, alias bombs and duplicate keys.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view what, const YamlLimits& limits) : what_(what), limits_(limits) {}

  const Status& status() const { return status_; }
  Value TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, Value(), anchor, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) Fail(mark, "an alias that contains itself");
    CheckLevels(mark, it->second.extent.levels);
    CheckNodes(mark, nodes_ + it->second.extent.nodes);
    Add(mark, it->second.value, 0, it->second.extent);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const Extent extent = ExtentOfScalar(text);
    if (tag == "!") return Add(mark, text, anchor, extent);  // a quoted one
    if (tag == "?") {
      if (text == "<<" && ExpectsKey()) Fail(mark, "merge keys (<<) are not read: write them out");
      return Add(mark, ResolvePlainScalar(text), anchor, extent);
    }
    std::optional<Value> value = ResolveTagged(tag, text);
    if (!value) Fail(mark, fmt::format("the tag {} is not read here", tag));
    Add(mark, *std::move(value), anchor, extent);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag, {"seq", "python/tuple"});
    Open(mark, Value::MakeArray(), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag, {"map"});
    Open(mark, Value::MakeObject(), anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    Extent extent;
    std::optional<std::string> key;  // that waits for its value
    std::unordered_set<std::string> keys;
  };
  struct Anchored {
    Value value;
    Extent extent;
  };

  // An exception is the only way to stop yaml-cpp's parser; ParseYaml catches it.
  [[noreturn]] void Fail(const YAML::Mark& mark, const std::string& reason) {
    status_ = CorruptFile(
        fmt::format("{}: line {}, column {}: {}", what_, mark.line + 1, mark.column + 1, reason));
    throw YAML::Exception(mark, reason);
  }
  void CheckTag(const YAML::Mark& mark, const std::string& tag,
                std::initializer_list<std::string_view> known) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    if (tag.starts_with(kTagPrefix) &&
        OneOf(std::string_view(tag).substr(kTagPrefix.size()), known))
      return;
    Fail(mark, fmt::format("the tag {} is not read here", tag));
  }
  void CheckNodes(const YAML::Mark& mark, int64_t nodes) {
    if (nodes <= limits_.max_nodes) return;
    Fail(mark, fmt::format("more than {} nodes after aliases are expanded", limits_.max_nodes));
  }
  void CheckLevels(const YAML::Mark& mark, int more) {
    if (static_cast<int>(open_.size()) + more <= limits_.max_depth) return;
    Fail(mark, fmt::format("nested deeper than {} levels", limits_.max_depth));
  }

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().key;
  }

  void Open(const YAML::Mark& mark, Value value, YAML::anchor_t anchor) {
    CheckLevels(mark, 1);
    open_.push_back({std::move(value), mark, anchor, {.nodes = 1, .levels = 1}, std::nullopt, {}});
  }

  void Close() {
    OpenNode node = std::move(open_.back());
    open_.pop_back();
    nodes_ -= node.extent.nodes - 1;  // Add counts them again
    Add(node.mark, std::move(node.value), node.anchor, node.extent);
  }

  void Add(const YAML::Mark& mark, Value value, YAML::anchor_t anchor, Extent extent) {
    nodes_ += extent.nodes;
    CheckNodes(mark, nodes_);
    if (anchor != 0) {
      // Anchors inside each other keep a copy each.
      anchored_nodes_ += extent.nodes;
      CheckNodes(mark, anchored_nodes_);
      anchors_[anchor] = {value, extent};
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    OpenNode& parent = open_.back();
    parent.extent.nodes += extent.nodes;
    parent.extent.levels = std::max(parent.extent.levels, extent.levels + 1);
    if (parent.value.is_array()) {
      parent.value.as_array().push_back(std::move(value));
    } else if (!parent.key) {
      AddKey(mark, value, &parent);
    } else {
      parent.value.as_object().emplace_back(*std::move(parent.key), std::move(value));
      parent.key.reset();
    }
  }

  void AddKey(const YAML::Mark& mark, const Value& value, OpenNode* parent) {
    if (value.is_array() || value.is_object()) Fail(mark, "a key is a list or a mapping");
    parent->key = value.is_string() ? value.as_string() : WriteJson(value);
    if (!parent->keys.insert(*parent->key).second)
      Fail(mark, "the key " + JsonString(*parent->key) + " occurs twice");
  }

  std::string what_;
  YamlLimits limits_;
  Status status_;
  int64_t nodes_ = 0;
  int64_t anchored_nodes_ = 0;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Value root_;
};

bool IsScalar(const Value& value) {
  return !value.is_array() && !value.is_object();
}

// As PyYAML reads it back: a float has a point ("1.0e-05").
std::string WriteFloat(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = PythonFloat(value);
  if (text.find('.') == std::string::npos) text.insert(text.find('e'), ".0");
  return text;
}

std::string WriteScalar(const Value& value) {
  if (value.is_float()) return WriteFloat(value.as_double());
  if (!value.is_string()) return WriteJson(value);
  const std::string& text = value.as_string();
  // Texts that begin with a digit may be a date or a time to other readers.
  const bool plain = !text.empty() && !IsDigit(text[0]) && text[0] != '-' && text[0] != '.' &&
                     ResolvePlainScalar(text).is_string() &&
                     std::all_of(text.begin(), text.end(), [](char c) {
                       return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              std::string_view("_.-/").find(c) != std::string_view::npos;
                     });
  if (plain) return text;
  // Single quotes keep backslashes, which regular expressions are full of.
  const bool needs_escapes = std::any_of(text.begin(), text.end(), [](char c) {
    return c == '\'' || static_cast<unsigned char>(c) < 0x20;
  });
  return needs_escapes ? JsonString(text) : "'" + text + "'";
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
    *out += pad + "{}\n";
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
  // To yaml-cpp byte 4 is the end of the text. YAML allows no control character but these.
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r')
      return CorruptFile(fmt::format("{}: a control character, byte {:#04x}", what, c));
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
