#include "base/value.h"

#include <algorithm>

namespace octavo {

namespace {

Status WrongType(std::string_view key, const Value& found, std::string_view expected) {
  return InvalidArgument("\"" + std::string(key) + "\" is " + std::string(found.type_name()) +
                         ", expected " + std::string(expected));
}

Status Missing(std::string_view key) {
  return InvalidArgument("\"" + std::string(key) + "\" is missing");
}

// The member, or null where it is absent or an explicit null.
const Value* FindPresent(const Value& object, std::string_view key) {
  const Value* member = object.Find(key);
  return member == nullptr || member->is_null() ? nullptr : member;
}

}  // namespace

std::string_view Value::type_name() const {
  static constexpr std::string_view kNames[] = {"null",   "boolean", "integer", "number",
                                                "string", "array",   "object"};
  return kNames[data_.index()];
}

const Value* Value::Find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : as_object()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Value* Value::Find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).Find(key));
}

void Value::Set(std::string_view key, Value value) {
  if (is_null()) data_ = Object();
  if (Value* member = Find(key)) {
    *member = std::move(value);
  } else {
    as_object().emplace_back(std::string(key), std::move(value));
  }
}

void Value::Erase(std::string_view key) {
  if (!is_object()) return;
  std::erase_if(as_object(), [&](const Member& member) { return member.first == key; });
}

Result<bool> Value::GetBool(std::string_view key, bool fallback) const {
  const Value* member = FindPresent(*this, key);
  if (member == nullptr) return fallback;
  if (!member->is_bool()) return WrongType(key, *member, "true or false");
  return member->as_bool();
}

Result<int64_t> Value::GetInt(std::string_view key, int64_t fallback) const {
  const Value* member = FindPresent(*this, key);
  if (member == nullptr) return fallback;
  if (!member->is_int()) return WrongType(key, *member, "an integer");
  return member->as_int();
}

Result<double> Value::GetDouble(std::string_view key, double fallback) const {
  const Value* member = FindPresent(*this, key);
  if (member == nullptr) return fallback;
  if (!member->is_number()) return WrongType(key, *member, "a number");
  return member->as_double();
}

Result<std::string> Value::GetString(std::string_view key, std::string_view fallback) const {
  const Value* member = FindPresent(*this, key);
  if (member == nullptr) return std::string(fallback);
  if (!member->is_string()) return WrongType(key, *member, "a string");
  return member->as_string();
}

Result<int64_t> Value::RequireInt(std::string_view key) const {
  if (FindPresent(*this, key) == nullptr) return Missing(key);
  return GetInt(key, 0);
}

Result<std::string> Value::RequireString(std::string_view key) const {
  if (FindPresent(*this, key) == nullptr) return Missing(key);
  return GetString(key, "");
}

}  // namespace octavo
