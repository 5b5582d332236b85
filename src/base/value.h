// Value: one JSON-like value, our own, into which every JSON and YAML text is converted at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace octavo {

// null, boolean, integer (int64), float (double), string, array, or object. An object keeps the
// order in which its members were written; a key occurs once.
class Value {
 public:
  using Array = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Object = std::vector<Member>;

  Value() = default;
  Value(std::nullptr_t) {}             // NOLINT: implicit on purpose, all of these
  Value(bool value) : data_(value) {}  // NOLINT
  Value(int value) : data_(static_cast<int64_t>(value)) {}      // NOLINT
  Value(int64_t value) : data_(value) {}                        // NOLINT
  Value(double value) : data_(value) {}                         // NOLINT
  Value(std::string value) : data_(std::move(value)) {}         // NOLINT
  Value(std::string_view value) : data_(std::string(value)) {}  // NOLINT
  Value(const char* value) : data_(std::string(value)) {}       // NOLINT
  Value(Array value) : data_(std::move(value)) {}               // NOLINT
  Value(Object value) : data_(std::move(value)) {}              // NOLINT
  static Value MakeArray() { return Value(Array()); }
  static Value MakeObject() { return Value(Object()); }

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  bool is_array() const { return std::holds_alternative<Array>(data_); }
  bool is_object() const { return std::holds_alternative<Object>(data_); }
  // "null", "boolean", "integer", "number", "string", "array" or "object", for messages.
  std::string_view type_name() const;

  // Each aborts if the value is of another type: test first, or use the Get functions below on
  // input.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return std::get<int64_t>(data_); }
  double as_double() const {
    return is_int() ? static_cast<double>(as_int()) : std::get<double>(data_);
  }
  const std::string& as_string() const { return std::get<std::string>(data_); }
  const Array& as_array() const { return std::get<Array>(data_); }
  Array& as_array() { return std::get<Array>(data_); }
  const Object& as_object() const { return std::get<Object>(data_); }
  Object& as_object() { return std::get<Object>(data_); }

  // The member of that name, or null (the pointer) if this is no object or has none.
  const Value* Find(std::string_view key) const;
  Value* Find(std::string_view key);
  // Sets or appends a member; turns a null value into an object.
  void Set(std::string_view key, Value value);
  // Removes a member if it is there.
  void Erase(std::string_view key);

  // Typed members of an object from a file. An absent member and an explicit null both give
  // `fallback`; another type is InvalidArgument naming the key, what was found and what was
  // expected.
  Result<bool> GetBool(std::string_view key, bool fallback) const;
  Result<int64_t> GetInt(std::string_view key, int64_t fallback) const;
  Result<double> GetDouble(std::string_view key, double fallback) const;
  Result<std::string> GetString(std::string_view key, std::string_view fallback) const;
  // The same where absence is an error too.
  Result<int64_t> RequireInt(std::string_view key) const;
  Result<std::string> RequireString(std::string_view key) const;

  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> data_;
};

}  // namespace octavo
