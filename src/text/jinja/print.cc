#include "text/jinja/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

// Appends while it charges what it writes: a small value shared many times can print huge.
class Printer {
 public:
  explicit Printer(Runtime& runtime) : runtime_(runtime) {}
  std::string Take() { return std::move(out_); }

  Status Put(std::string_view text) {
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(static_cast<int64_t>(text.size()) + 1));
    out_ += text;
    return OkStatus();
  }

  Status Repr(const Value& value) {
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeSteps(1));
    if (value.is_undefined()) return Put("Undefined");
    if (value.is_string()) {
      const std::string quoted = QuotePython(value.as_string());
      return Put(value.is_markup() ? "Markup(" + quoted + ")" : quoted);
    }
    if (value.is_list()) return ReprList(value.as_list());
    if (value.is_dict()) return ReprDict(value.as_dict());
    if (auto* names = value.As<Namespace>()) return ReprNamespace(*names);
    return Scalar(value);
  }

  Status Scalar(const Value& value) {
    if (value.is_none()) return Put("None");
    if (value.is_bool()) return Put(value.as_bool() ? "True" : "False");
    if (value.is_int()) return Put(std::to_string(value.as_int()));
    if (value.is_float()) return Put(PythonFloat(value.as_double()));
    const std::string text = value.as_object().Print();
    if (text.empty()) {
      return InvalidArgument(
          fmt::format("a {} cannot be printed (a filter such as list is missing)",
                      value.as_object().type_name()));
    }
    return Put(text);
  }

 private:
  Status ReprItems(const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) OCTAVO_RETURN_IF_ERROR(Put(", "));
      OCTAVO_RETURN_IF_ERROR(Repr(items[i]));
    }
    return OkStatus();
  }

  Status ReprList(const List& list) {
    if (list.kind == ListKind::kRange) {
      return Put(list.step == 1
                     ? fmt::format("range({}, {})", list.start, list.stop)
                     : fmt::format("range({}, {}, {})", list.start, list.stop, list.step));
    }
    static constexpr std::string_view kOpen[] = {"[", "(", "dict_keys([", "dict_values([",
                                                 "dict_items(["};
    static constexpr std::string_view kClose[] = {"]", ")", "])", "])", "])"};
    const auto kind = static_cast<size_t>(list.kind);
    OCTAVO_RETURN_IF_ERROR(Put(kOpen[kind]));
    OCTAVO_RETURN_IF_ERROR(ReprItems(list.items));
    if (list.kind == ListKind::kTuple && list.items.size() == 1) OCTAVO_RETURN_IF_ERROR(Put(","));
    return Put(kClose[kind]);
  }

  Status ReprDict(const Dict& dict) {
    OCTAVO_RETURN_IF_ERROR(Put("{"));
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) OCTAVO_RETURN_IF_ERROR(Put(", "));
      first = false;
      OCTAVO_RETURN_IF_ERROR(Repr(key));
      OCTAVO_RETURN_IF_ERROR(Put(": "));
      OCTAVO_RETURN_IF_ERROR(Repr(value));
    }
    return Put("}");
  }

  // Namespaces can contain themselves.
  Status ReprNamespace(const Namespace& names) {
    if (open_namespaces_ >= kMaxNesting / 8) {
      return InvalidArgument("a namespace inside itself cannot be printed");
    }
    ++open_namespaces_;
    OCTAVO_RETURN_IF_ERROR(Put("<Namespace "));
    OCTAVO_RETURN_IF_ERROR(ReprDict(names.members));
    --open_namespaces_;
    return Put(">");
  }

  Runtime& runtime_;
  std::string out_;
  int open_namespaces_ = 0;
};

class JsonPrinter {
 public:
  JsonPrinter(Runtime& runtime, const JsonOptions& options)
      : runtime_(runtime), options_(options) {}
  std::string Take() { return std::move(out_); }

  Status Write(const Value& value, int depth) {
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeSteps(1));
    if (value.is_none()) return Put("null");
    if (value.is_bool()) return Put(value.as_bool() ? "true" : "false");
    if (value.is_int()) return Put(std::to_string(value.as_int()));
    if (value.is_float()) return Put(Float(value.as_double()));
    if (value.is_string()) return Put(JsonString(value.as_string(), options_.ensure_ascii));
    if (value.is_dict()) return WriteDict(value.as_dict(), depth);
    if (value.is_list(ListKind::kList) || value.is_list(ListKind::kTuple)) {
      return WriteList(value.as_list().items, depth);
    }
    return InvalidArgument(
        fmt::format("tojson: a value of type {} is not JSON", value.type_name()));
  }

 private:
  Status Put(std::string_view text) {
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(static_cast<int64_t>(text.size())));
    out_ += text;
    return OkStatus();
  }

  static std::string Float(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return PythonFloat(value);
  }

  Status NewLine(int depth) {
    if (!options_.indented) return OkStatus();
    OCTAVO_RETURN_IF_ERROR(Put("\n"));
    for (int i = 0; i < depth; ++i) OCTAVO_RETURN_IF_ERROR(Put(options_.indent));
    return OkStatus();
  }

  Status WriteList(const std::vector<Value>& items, int depth) {
    if (items.empty()) return Put("[]");
    OCTAVO_RETURN_IF_ERROR(Put("["));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) OCTAVO_RETURN_IF_ERROR(Put(options_.item_separator));
      OCTAVO_RETURN_IF_ERROR(NewLine(depth + 1));
      OCTAVO_RETURN_IF_ERROR(Write(items[i], depth + 1));
    }
    OCTAVO_RETURN_IF_ERROR(NewLine(depth));
    return Put("]");
  }

  static Result<std::string> Key(const Value& key) {
    if (key.is_string()) return key.as_string();
    if (key.is_none()) return std::string("null");
    if (key.is_bool()) return std::string(key.as_bool() ? "true" : "false");
    if (key.is_int()) return std::to_string(key.as_int());
    if (key.is_float()) return Float(key.as_double());
    return InvalidArgument(fmt::format("tojson: a key of type {} is not JSON", key.type_name()));
  }

  Status WriteDict(const Dict& dict, int depth) {
    if (dict.size() == 0) return Put("{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) {
      if (options_.sort_keys && !entry.first.is_string()) {
        return Unsupported("tojson(sort_keys=true) of keys that are not strings");
      }
      entries.push_back(&entry);
    }
    if (options_.sort_keys) {
      std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
        return a->first.as_string() < b->first.as_string();
      });
    }
    OCTAVO_RETURN_IF_ERROR(Put("{"));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) OCTAVO_RETURN_IF_ERROR(Put(options_.item_separator));
      OCTAVO_RETURN_IF_ERROR(NewLine(depth + 1));
      OCTAVO_ASSIGN_OR_RETURN(const std::string key, Key(entries[i]->first));
      OCTAVO_RETURN_IF_ERROR(Put(JsonString(key, options_.ensure_ascii)));
      OCTAVO_RETURN_IF_ERROR(Put(options_.key_separator));
      OCTAVO_RETURN_IF_ERROR(Write(entries[i]->second, depth + 1));
    }
    OCTAVO_RETURN_IF_ERROR(NewLine(depth));
    return Put("}");
  }

  Runtime& runtime_;
  const JsonOptions& options_;
  std::string out_;
};

}  // namespace

std::string QuotePython(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = NextCodePoint(text, &at);
    const auto number = static_cast<uint32_t>(code);
    if (code == static_cast<unsigned char>(quote) || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (IsPrintable(code)) {
      out += text.substr(start, at - start);
    } else if (code < 0x100) {
      out += fmt::format("\\x{:02x}", number);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", number);
    } else {
      out += fmt::format("\\U{:08x}", number);
    }
  }
  out += quote;
  return out;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Result<std::string> ToRepr(Runtime& runtime, const Value& value) {
  Printer printer(runtime);
  OCTAVO_RETURN_IF_ERROR(printer.Repr(value));
  return printer.Take();
}

Result<std::string> ToText(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return std::string();
  if (value.is_string()) {
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(value.as_string().size())));
    return value.as_string();
  }
  return ToRepr(runtime, value);
}

Result<std::string> ToJson(Runtime& runtime, const Value& value, const JsonOptions& options) {
  JsonPrinter printer(runtime, options);
  OCTAVO_RETURN_IF_ERROR(printer.Write(value, 0));
  return printer.Take();
}

}  // namespace octavo::jinja
