// jinja::Value: what a template computes with, by Python's rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/value.h"

namespace octavo::jinja {

class Object;
class Value;
struct List;
class Dict;

// The deepest nesting of lists and dicts; every recursion over values is bounded by it.
inline constexpr int kMaxNesting = 160;

// A name or attribute that is missing. `reason` is what an error says when it is used.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};

// Text is valid UTF-8; `markup` marks text that counts as escaped HTML (Python's Markup).
struct Text {
  std::shared_ptr<const std::string> utf8;
  bool markup = false;
};

// What a list looks like to a template: they differ in printing, comparing and indexing.
enum class ListKind { kList, kTuple, kKeys, kValues, kItems, kRange };

// Lists and dicts never change once they are made (the sandbox has no append), so values share
// them.
class Value {
  struct NoneType {};

 public:
  Value() = default;
  static Value UndefinedBecause(std::string reason);
  static Value None() { return Value(std::in_place_type<NoneType>); }
  static Value Bool(bool value) { return Value(std::in_place_type<bool>, value); }
  static Value Int(int64_t value) { return Value(std::in_place_type<int64_t>, value); }
  static Value Float(double value) { return Value(std::in_place_type<double>, value); }
  static Value String(std::string text, bool markup = false);
  static Value MakeList(std::vector<Value> items, ListKind kind = ListKind::kList);
  static Value MakeTuple(std::vector<Value> items) {
    return MakeList(std::move(items), ListKind::kTuple);
  }
  // A tuple that also has the attributes grouper and list, as groupby makes it.
  static Value MakeGroup(Value grouper, Value list);
  static Value MakeRange(int64_t start, int64_t stop, int64_t step, std::vector<Value> items);
  static Value MakeDict(Dict dict);
  static Value MakeObject(std::shared_ptr<Object> object);
  // Fails where the value is nested too deep.
  static Result<Value> FromJson(const octavo::Value& json);

  bool is_undefined() const { return data_.index() == 0; }
  bool is_none() const { return data_.index() == 1; }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_integral() const { return is_int() || is_bool(); }  // Python: bool is an int
  bool is_number() const { return is_integral() || is_float(); }
  bool is_string() const { return std::holds_alternative<Text>(data_); }
  bool is_markup() const { return is_string() && std::get<Text>(data_).markup; }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const List>>(data_); }
  bool is_list(ListKind kind) const;
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<const Dict>>(data_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(data_); }

  const std::string& undefined_reason() const;
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const {
    return is_bool() ? static_cast<int64_t>(as_bool()) : std::get<int64_t>(data_);
  }
  double as_double() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }
  const std::string& as_string() const { return *std::get<Text>(data_).utf8; }
  const List& as_list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& as_object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  // The object as a T, or null.
  template <typename T>
  T* As() const {
    return is_object() ? dynamic_cast<T*>(std::get<std::shared_ptr<Object>>(data_).get()) : nullptr;
  }
  // Whether both are one and the same (Python's `is`).
  bool SameAs(const Value& other) const;

  bool Truthy() const;
  // Python's name of the type, for messages.
  std::string_view type_name() const;
  // 0 for scalars, else one more than that of the deepest item.
  int depth() const;

 private:
  using Data =
      std::variant<Undefined, NoneType, bool, int64_t, double, Text, std::shared_ptr<const List>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Object>>;
  // Built in place: moving the variant makes GCC 12 warn of uninitialized members.
  template <typename T, typename... Arguments>
  explicit Value(std::in_place_type_t<T> type, Arguments&&... arguments)
      : data_(type, std::forward<Arguments>(arguments)...) {}
  Data data_;
};

struct List {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
  int depth = 1;
  bool is_group = false;                  // MakeGroup
  int64_t start = 0, stop = 0, step = 1;  // of a range
};

// A dict in order of insertion. Keys are hashable (IsHashable), 1 == 1.0 == True as in Python.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  void Set(Value key, Value value);
  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  int depth() const { return depth_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_multimap<uint64_t, size_t> index_;  // hash of key -> place
  int depth_ = 1;
};

bool IsHashable(const Value& value);
bool Equal(const Value& a, const Value& b);

// What has behaviour: functions, macros, loops, namespaces, iterators.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  virtual bool callable() const { return false; }
  // Whether it has that attribute, and its value.
  virtual bool GetAttribute(std::string_view name, Value* value);
  // As printed; "" where Python would print an address, which has no meaning here.
  virtual std::string Print() const { return ""; }
  // Drops references to other values that could form a cycle.
  virtual void Clear() {}
  virtual int depth() const { return 0; }
};

// namespace(): the one thing a template may change.
class Namespace : public Object {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  bool GetAttribute(std::string_view name, Value* value) override;
  void Clear() override { members = Dict(); }
  Dict members;
};

// What map, select, reverse ... give: can be gone through once.
class Iterator : public Object {
 public:
  explicit Iterator(std::vector<Value> items);
  std::string_view type_name() const override { return "generator"; }
  int depth() const override { return depth_; }
  std::vector<Value> items;
  size_t next = 0;

 private:
  int depth_ = 1;
};

Value MakeIterator(std::vector<Value> items);

}  // namespace octavo::jinja
