#include "quant/strict_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/suggest.h"

namespace octavo {

namespace {

Status InPath(const Status& status, const std::string& where) {
  return where.empty() ? status : status.Annotate(where);
}

}  // namespace

Result<StrictObject> StrictObject::Make(const Value& value, std::string_view where,
                                        std::initializer_list<std::string_view> known) {
  return Make(value, where, std::vector<std::string>(known.begin(), known.end()));
}

Result<StrictObject> StrictObject::Make(const Value& value, std::string_view where,
                                        const std::vector<std::string>& known) {
  if (!value.is_object())
    return InvalidArgument(fmt::format("{} is {}, expected an object", where, value.type_name()));
  for (const auto& [key, member] : value.as_object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = DidYouMean(key, known);
    return InvalidArgument(fmt::format(
        "{}: unknown key \"{}\"{}", where, key,
        nearest.empty() ? fmt::format("; known: {}", fmt::join(known, ", ")) : nearest));
  }
  return StrictObject(value, where);
}

std::string StrictObject::Path(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

const Value* StrictObject::Find(std::string_view key) const {
  const Value* member = value_->Find(key);
  return member == nullptr || member->is_null() ? nullptr : member;
}

Result<bool> StrictObject::Bool(std::string_view key, bool fallback) const {
  Result<bool> member = value_->GetBool(key, fallback);
  if (!member.ok()) return InPath(member.status(), where_);
  return member;
}

Result<int64_t> StrictObject::Int(std::string_view key, int64_t fallback) const {
  Result<int64_t> member = value_->GetInt(key, fallback);
  if (!member.ok()) return InPath(member.status(), where_);
  return member;
}

Result<double> StrictObject::Double(std::string_view key, double fallback) const {
  Result<double> member = value_->GetDouble(key, fallback);
  if (!member.ok()) return InPath(member.status(), where_);
  return member;
}

Result<std::string> StrictObject::String(std::string_view key, std::string_view fallback) const {
  Result<std::string> member = value_->GetString(key, fallback);
  if (!member.ok()) return InPath(member.status(), where_);
  return member;
}

Result<std::vector<std::string>> StrictObject::Strings(std::string_view key,
                                                       std::vector<std::string> fallback) const {
  const Value* member = Find(key);
  if (member == nullptr) return fallback;
  return ParseStrings(*member, Path(key));
}

Result<std::vector<std::string>> ParseStrings(const Value& value, std::string_view where) {
  if (value.is_string()) return std::vector<std::string>{value.as_string()};
  std::vector<std::string> strings;
  if (value.is_array()) {
    for (const Value& item : value.as_array()) {
      if (item.is_string()) strings.push_back(item.as_string());
    }
    if (strings.size() == value.as_array().size()) return strings;
  }
  return InvalidArgument(
      fmt::format("{} is {}, expected a list of strings", where,
                  value.is_array() ? "a list that holds other things" : value.type_name()));
}

}  // namespace octavo
