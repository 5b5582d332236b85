#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace octavo::jinja {

namespace {

int DepthOf(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return depth + 1;
}

uint64_t Hash(const Value& key) {
  if (key.is_string()) return std::hash<std::string>()(key.as_string());
  if (key.is_number()) return std::hash<double>()(key.as_double());
  if (!key.is_list()) return 0;
  uint64_t hash = 7;
  for (const Value& item : key.as_list().items) hash = hash * 31 + Hash(item);
  return hash;
}

Result<Value> FromJsonAt(const octavo::Value& json, int depth) {
  if (depth > kMaxNesting) {
    return InvalidArgument("a value handed to the template is nested deeper than " +
                           std::to_string(kMaxNesting) + " levels");
  }
  if (json.is_null()) return Value::None();
  if (json.is_bool()) return Value::Bool(json.as_bool());
  if (json.is_int()) return Value::Int(json.as_int());
  if (json.is_float()) return Value::Float(json.as_double());
  if (json.is_string()) return Value::String(json.as_string());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const octavo::Value& item : json.as_array()) {
      OCTAVO_ASSIGN_OR_RETURN(Value value, FromJsonAt(item, depth + 1));
      items.push_back(std::move(value));
    }
    return Value::MakeList(std::move(items));
  }
  Dict dict;
  for (const auto& [key, member] : json.as_object()) {
    OCTAVO_ASSIGN_OR_RETURN(Value value, FromJsonAt(member, depth + 1));
    dict.Set(Value::String(key), std::move(value));
  }
  return Value::MakeDict(std::move(dict));
}

// Numbers compare by value whatever their types; long double holds each int64 exactly.
bool NumbersEqual(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  const auto wide = [](const Value& v) {
    return v.is_float() ? static_cast<long double>(v.as_double())
                        : static_cast<long double>(v.as_int());
  };
  return wide(a) == wide(b);
}

bool DictsEqual(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.entries().begin(), a.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = b.Find(entry.first);
    return other != nullptr && Equal(entry.second, *other);
  });
}

}  // namespace

Value Value::UndefinedBecause(std::string reason) {
  return Value(std::in_place_type<Undefined>,
               Undefined{std::make_shared<const std::string>(std::move(reason))});
}

Value Value::String(std::string text, bool markup) {
  return Value(std::in_place_type<Text>,
               Text{std::make_shared<const std::string>(std::move(text)), markup});
}

Value Value::MakeList(std::vector<Value> items, ListKind kind) {
  auto list = std::make_shared<List>();
  list->kind = kind;
  list->depth = DepthOf(items);
  list->items = std::move(items);
  return Value(std::in_place_type<std::shared_ptr<const List>>, std::move(list));
}

Value Value::MakeGroup(Value grouper, Value items) {
  auto list = std::make_shared<List>();
  list->kind = ListKind::kTuple;
  list->is_group = true;
  list->items = {std::move(grouper), std::move(items)};
  list->depth = DepthOf(list->items);
  return Value(std::in_place_type<std::shared_ptr<const List>>, std::move(list));
}

Value Value::MakeRange(int64_t start, int64_t stop, int64_t step, std::vector<Value> items) {
  auto list = std::make_shared<List>();
  list->kind = ListKind::kRange;
  list->items = std::move(items);
  list->start = start;
  list->stop = stop;
  list->step = step;
  return Value(std::in_place_type<std::shared_ptr<const List>>, std::move(list));
}

Value Value::MakeDict(Dict dict) {
  return Value(std::in_place_type<std::shared_ptr<const Dict>>,
               std::make_shared<Dict>(std::move(dict)));
}

Value Value::MakeObject(std::shared_ptr<Object> object) {
  return Value(std::in_place_type<std::shared_ptr<Object>>, std::move(object));
}

Result<Value> Value::FromJson(const octavo::Value& json) {
  return FromJsonAt(json, 0);
}

bool Value::is_list(ListKind kind) const {
  return is_list() && as_list().kind == kind;
}

const std::string& Value::undefined_reason() const {
  static const std::string kNoReason = "an undefined value is used";
  const auto& reason = std::get<Undefined>(data_).reason;
  return reason == nullptr ? kNoReason : *reason;
}

bool Value::SameAs(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_list()) return &as_list() == &other.as_list();
  if (is_dict()) return &as_dict() == &other.as_dict();
  if (is_object()) return &as_object() == &other.as_object();
  return Equal(*this, other);
}

bool Value::Truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_integral()) return as_int() != 0;
  if (is_float()) return as_double() != 0;
  if (is_string()) return !as_string().empty();
  if (is_list()) return !as_list().items.empty();
  if (is_dict()) return as_dict().size() != 0;
  return true;
}

std::string_view Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_string()) return is_markup() ? "Markup" : "str";
  if (is_dict()) return "dict";
  if (is_object()) return as_object().type_name();
  static constexpr std::string_view kNames[] = {"list",        "tuple",      "dict_keys",
                                                "dict_values", "dict_items", "range"};
  return kNames[static_cast<size_t>(as_list().kind)];
}

int Value::depth() const {
  if (is_list()) return as_list().depth;
  if (is_dict()) return as_dict().depth();
  return is_object() ? as_object().depth() : 0;
}

const Value* Dict::Find(const Value& key) const {
  const auto [begin, end] = index_.equal_range(Hash(key));
  for (auto it = begin; it != end; ++it) {
    if (Equal(entries_[it->second].first, key)) return &entries_[it->second].second;
  }
  return nullptr;
}

const Value* Dict::Find(std::string_view key) const {
  return Find(Value::String(std::string(key)));
}

void Dict::Set(Value key, Value value) {
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  const auto [begin, end] = index_.equal_range(Hash(key));
  for (auto it = begin; it != end; ++it) {
    Entry& entry = entries_[it->second];
    if (Equal(entry.first, key)) {
      entry.second = std::move(value);
      return;
    }
  }
  index_.emplace(Hash(key), entries_.size());
  entries_.emplace_back(std::move(key), std::move(value));
}

bool IsHashable(const Value& value) {
  if (value.is_dict()) return false;
  if (!value.is_list()) return true;
  if (value.is_list(ListKind::kRange)) return true;
  return value.is_list(ListKind::kTuple) &&
         std::all_of(value.as_list().items.begin(), value.as_list().items.end(), IsHashable);
}

bool Equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return NumbersEqual(a, b);
  if (a.is_string() && b.is_string()) return a.as_string() == b.as_string();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_dict() && b.is_dict()) return DictsEqual(a.as_dict(), b.as_dict());
  if (a.is_object() && b.is_object()) return &a.as_object() == &b.as_object();
  if (!a.is_list() || !b.is_list()) return false;
  const List& left = a.as_list();
  const List& right = b.as_list();
  if (&left == &right) return true;
  return left.kind == right.kind && left.kind != ListKind::kValues &&
         std::equal(left.items.begin(), left.items.end(), right.items.begin(), right.items.end(),
                    Equal);
}

bool Object::GetAttribute(std::string_view, Value*) {
  return false;
}

bool Namespace::GetAttribute(std::string_view name, Value* value) {
  const Value* member = members.Find(name);
  if (member == nullptr) return false;
  *value = *member;
  return true;
}

Iterator::Iterator(std::vector<Value> all) : items(std::move(all)), depth_(DepthOf(items)) {}

Value MakeIterator(std::vector<Value> items) {
  return Value::MakeObject(std::make_shared<Iterator>(std::move(items)));
}

}  // namespace octavo::jinja
