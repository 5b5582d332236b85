// StrictObject: typed members of an object in which an unknown key is an error.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

// A view of a Value that outlives it. Every message begins with the path of what it is about.
class StrictObject {
 public:
  // InvalidArgument when `value` is no object, or has a key that is not in `known`: the message
  // names it and the nearest known one.
  static Result<StrictObject> Make(const Value& value, std::string_view where,
                                   std::initializer_list<std::string_view> known);
  static Result<StrictObject> Make(const Value& value, std::string_view where,
                                   const std::vector<std::string>& known);

  const std::string& where() const { return where_; }
  // "config_groups.group_0.weights" + ".type".
  std::string Path(std::string_view key) const;

  // The member, or null (the pointer) where it is absent or an explicit null.
  const Value* Find(std::string_view key) const;
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Absent and null give `fallback`; another type is InvalidArgument.
  Result<bool> Bool(std::string_view key, bool fallback) const;
  Result<int64_t> Int(std::string_view key, int64_t fallback) const;
  Result<double> Double(std::string_view key, double fallback) const;
  Result<std::string> String(std::string_view key, std::string_view fallback) const;
  // A list of strings; a single string is a list of one.
  Result<std::vector<std::string>> Strings(std::string_view key,
                                           std::vector<std::string> fallback) const;

 private:
  StrictObject(const Value& value, std::string_view where) : value_(&value), where_(where) {}

  const Value* value_;
  std::string where_;
};

// A list of strings, or one string; `where` names it in messages.
Result<std::vector<std::string>> ParseStrings(const Value& value, std::string_view where);

}  // namespace octavo
