// Filters of filters.inc over lists, dicts and anything that can be gone through.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

constexpr int64_t kMaxPieces = 100'000;  // of batch and slice

// "a.b.0": the item of the item; a missing one is `fallback`.
Result<Value> FollowPath(Runtime& runtime, Value value, const Value& path,
                         const Value* fallback = nullptr) {
  if (!path.is_string()) return GetItem(runtime, value, path);
  std::string_view rest = path.as_string();
  while (true) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = error == std::errc() && end == part.data() + part.size() && number >= 0;
    OCTAVO_ASSIGN_OR_RETURN(
        value,
        GetItem(runtime, value, is_number ? Value::Int(number) : Value::String(std::string(part))));
    if (value.is_undefined() && fallback != nullptr) value = *fallback;
    if (part.size() == rest.size()) return value;
    rest.remove_prefix(part.size() + 1);
  }
}

Value IgnoreCase(const Value& value) {
  return value.is_string() ? Value::String(Lower(value.as_string())) : value;
}

// What sort, min, unique ... compare: the value or its attribute, without case unless asked for.
Result<Value> SortKey(Runtime& runtime, const Value& value, const Value& attribute,
                      bool case_sensitive) {
  Value key = value;
  if (!attribute.is_undefined() && !attribute.is_none()) {
    OCTAVO_ASSIGN_OR_RETURN(key, FollowPath(runtime, value, attribute));
  }
  return case_sensitive ? key : IgnoreCase(key);
}

// "a,b": several attributes, compared one after the other.
Result<Value> SortKeys(Runtime& runtime, const Value& value, const Value& attributes,
                       bool case_sensitive) {
  if (!attributes.is_string() || attributes.as_string().find(',') == std::string::npos) {
    return SortKey(runtime, value, attributes, case_sensitive);
  }
  std::vector<Value> keys;
  std::string_view rest = attributes.as_string();
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    OCTAVO_ASSIGN_OR_RETURN(
        Value key, SortKey(runtime, value, Value::String(std::string(part)), case_sensitive));
    keys.push_back(std::move(key));
    if (part.size() == rest.size()) return Value::MakeList(std::move(keys));
    rest.remove_prefix(part.size() + 1);
  }
}

struct Keyed {
  Value key;
  Value value;
};

// Stable merge sort: a comparison may fail, which std::sort does not allow. Reversed as Python
// does it: equal ones keep their order.
Status StableSort(Runtime& runtime, std::vector<Keyed>& items, bool reverse) {
  std::vector<Keyed> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          OCTAVO_ASSIGN_OR_RETURN(take_right,
                                  reverse ? Less(runtime, items[left].key, items[right].key)
                                          : Less(runtime, items[right].key, items[left].key));
        }
        merged[out] = std::move(items[take_right ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
  return OkStatus();
}

Result<std::vector<Keyed>> KeyedItems(Runtime& runtime, const Value& self, const Value& attribute,
                                      bool case_sensitive) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, self));
  std::vector<Keyed> keyed;
  for (Value& item : items) {
    OCTAVO_ASSIGN_OR_RETURN(Value key, SortKeys(runtime, item, attribute, case_sensitive));
    keyed.push_back({std::move(key), std::move(item)});
  }
  return keyed;
}

Result<Value> Extreme(Runtime& runtime, const Value& self, const BoundArguments& arguments,
                      bool largest) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Keyed> items,
                          KeyedItems(runtime, self, arguments[1], arguments.Truthy(0, false)));
  if (items.empty()) return Value::UndefinedBecause("no aggregated item, sequence was empty");
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(const bool better, largest
                                                   ? Less(runtime, items[best].key, items[i].key)
                                                   : Less(runtime, items[i].key, items[best].key));
    if (better) best = i;
  }
  return items[best].value;
}

// select, reject, selectattr and rejectattr: what a test (or truth) says of items or an attribute.
Result<Value> Choose(Runtime& runtime, const Value& self, BoundArguments& arguments, bool keep,
                     bool by_attribute) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, self));
  std::vector<Value>& given = arguments.rest;
  Value attribute;
  if (by_attribute) {
    if (given.empty()) return TypeError("the attribute is missing");
    attribute = given[0];
    given.erase(given.begin());
  }
  std::optional<std::string> test;
  if (!given.empty()) {
    if (!given[0].is_string()) return TypeError("the name of a test must be a string");
    test = given[0].as_string();
    given.erase(given.begin());
  }
  std::vector<Value> chosen;
  for (Value& item : items) {
    Value subject = item;
    if (by_attribute) {
      OCTAVO_ASSIGN_OR_RETURN(subject, FollowPath(runtime, item, attribute));
    }
    bool passes = subject.Truthy();
    if (test.has_value()) {
      OCTAVO_ASSIGN_OR_RETURN(passes, CallTest(runtime, *test, subject, {given, arguments.named}));
    }
    if (passes == keep) chosen.push_back(std::move(item));
  }
  return MakeIterator(std::move(chosen));
}

std::optional<Value> TakeNamed(BoundArguments& arguments, std::string_view name) {
  for (auto it = arguments.named.begin(); it != arguments.named.end(); ++it) {
    if (it->first != name) continue;
    Value value = std::move(it->second);
    arguments.named.erase(it);
    return value;
  }
  return std::nullopt;
}

}  // namespace

Result<Value> FilterLength(Runtime&, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t length, Length(self));
  return Value::Int(length);
}

Result<Value> FilterList(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, self));
  return Value::MakeList(std::move(items));
}

Result<Value> FilterFirst(Runtime& runtime, const Value& self, BoundArguments&) {
  if (auto* iterator = self.As<Iterator>()) {  // takes one and leaves the rest
    if (iterator->next < iterator->items.size()) return iterator->items[iterator->next++];
  } else {
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, self));
    if (!items.empty()) return items.front();
  }
  return Value::UndefinedBecause("no first item, sequence was empty");
}

Result<Value> FilterLast(Runtime& runtime, const Value& self, BoundArguments&) {
  if (self.As<Iterator>() != nullptr) return TypeError("'generator' object is not reversible");
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, self));
  if (!items.empty()) return items.back();
  return Value::UndefinedBecause("no last item, sequence was empty");
}

Result<Value> FilterReverse(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, self));
  std::reverse(items.begin(), items.end());
  if (!self.is_string()) return MakeIterator(std::move(items));
  std::string text;
  for (const Value& item : items) text += item.as_string();
  return Value::String(std::move(text), self.is_markup());
}

Result<Value> FilterJoin(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  if (runtime.autoescape) return Unsupported("the filter join inside of autoescape");
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, self));
  std::string separator;
  if (arguments.Has(0)) {
    OCTAVO_ASSIGN_OR_RETURN(separator, ToText(runtime, arguments[0]));
  }
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (arguments.Has(1) && !arguments[1].is_none()) {
      OCTAVO_ASSIGN_OR_RETURN(item, FollowPath(runtime, item, arguments[1]));
    }
    OCTAVO_ASSIGN_OR_RETURN(const std::string piece, ToText(runtime, item));
    OCTAVO_RETURN_IF_ERROR(
        runtime.ChargeBytes(static_cast<int64_t>(piece.size() + separator.size())));
    if (i > 0) text += separator;
    text += piece;
  }
  return Value::String(std::move(text));
}

Result<Value> FilterItems(Runtime& runtime, const Value& self, BoundArguments&) {
  if (self.is_undefined()) return MakeIterator({});
  if (!self.is_dict()) return TypeError("Can only get item pairs from a mapping.");
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(3 * self.as_dict().size()));
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.as_dict().entries()) {
    pairs.push_back(Value::MakeTuple({key, value}));
  }
  return MakeIterator(std::move(pairs));
}

Result<Value> FilterDictsort(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  if (!self.is_dict()) return TypeError("dictsort needs a dict");
  OCTAVO_ASSIGN_OR_RETURN(const std::string by, arguments.Text(1, "key"));
  if (by != "key" && by != "value") return InvalidArgument("dictsort sorts by key or value");
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(4 * self.as_dict().size()));
  std::vector<Keyed> items;
  for (const auto& [key, value] : self.as_dict().entries()) {
    const Value& subject = by == "key" ? key : value;
    items.push_back({arguments.Truthy(0, false) ? subject : IgnoreCase(subject),
                     Value::MakeTuple({key, value})});
  }
  OCTAVO_RETURN_IF_ERROR(StableSort(runtime, items, arguments.Truthy(2, false)));
  std::vector<Value> sorted;
  for (Keyed& item : items) sorted.push_back(std::move(item.value));
  return Value::MakeList(std::move(sorted));
}

Result<Value> FilterSort(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Keyed> items,
                          KeyedItems(runtime, self, arguments[2], arguments.Truthy(1, false)));
  OCTAVO_RETURN_IF_ERROR(StableSort(runtime, items, arguments.Truthy(0, false)));
  std::vector<Value> sorted;
  for (Keyed& item : items) sorted.push_back(std::move(item.value));
  return Value::MakeList(std::move(sorted));
}

Result<Value> FilterUnique(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Keyed> items,
                          KeyedItems(runtime, self, arguments[1], arguments.Truthy(0, false)));
  Dict seen;
  std::vector<Value> kept;
  for (Keyed& item : items) {
    if (!IsHashable(item.key)) {
      return TypeError(fmt::format("unhashable type: '{}'", item.key.type_name()));
    }
    if (seen.Find(item.key) != nullptr) continue;
    seen.Set(item.key, Value::None());
    kept.push_back(std::move(item.value));
  }
  return MakeIterator(std::move(kept));
}

Result<Value> FilterMin(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  return Extreme(runtime, self, arguments, false);
}

Result<Value> FilterMax(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  return Extreme(runtime, self, arguments, true);
}

Result<Value> FilterSum(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, self));
  Value total = arguments.Has(1) ? arguments[1] : Value::Int(0);
  if (total.is_string()) return TypeError("sum() can't sum strings");
  for (Value item : items) {
    if (arguments.Has(0) && !arguments[0].is_none()) {
      OCTAVO_ASSIGN_OR_RETURN(item, FollowPath(runtime, item, arguments[0]));
    }
    OCTAVO_ASSIGN_OR_RETURN(total, Apply(runtime, BinaryOperator::kAdd, total, item));
  }
  return total;
}

Result<Value> FilterMap(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, self));
  std::optional<std::string> filter;
  std::optional<Value> attribute;
  std::optional<Value> fallback;
  if (arguments.rest.empty()) {
    attribute = TakeNamed(arguments, "attribute");
    fallback = TakeNamed(arguments, "default");
    if (!attribute.has_value()) return TypeError("map requires a filter argument");
    if (!arguments.named.empty()) return TypeError("map got an unexpected keyword argument");
  } else {
    if (!arguments.rest[0].is_string()) return TypeError("the name of a filter must be a string");
    filter = arguments.rest[0].as_string();
    arguments.rest.erase(arguments.rest.begin());
  }
  for (Value& item : items) {
    if (filter.has_value()) {
      OCTAVO_ASSIGN_OR_RETURN(
          item, CallFilter(runtime, *filter, item, {arguments.rest, arguments.named}));
    } else {
      OCTAVO_ASSIGN_OR_RETURN(
          item, FollowPath(runtime, item, *attribute, fallback.has_value() ? &*fallback : nullptr));
    }
  }
  return MakeIterator(std::move(items));
}

Result<Value> FilterSelect(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  return Choose(runtime, self, arguments, true, false);
}

Result<Value> FilterReject(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  return Choose(runtime, self, arguments, false, false);
}

Result<Value> FilterSelectattr(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  return Choose(runtime, self, arguments, true, true);
}

Result<Value> FilterRejectattr(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  return Choose(runtime, self, arguments, false, true);
}

Result<Value> FilterGroupby(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  const bool case_sensitive = arguments.Truthy(2, false);
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, self));
  std::vector<Keyed> keyed;
  for (Value& item : items) {
    OCTAVO_ASSIGN_OR_RETURN(Value key, FollowPath(runtime, item, arguments[0],
                                                  arguments.Has(1) ? &arguments[1] : nullptr));
    keyed.push_back({case_sensitive ? key : IgnoreCase(key), std::move(item)});
  }
  OCTAVO_RETURN_IF_ERROR(StableSort(runtime, keyed, false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin;
    std::vector<Value> members;
    for (; end < keyed.size() && Equal(keyed[end].key, keyed[begin].key); ++end) {
      members.push_back(keyed[end].value);
    }
    // The group is named as its first member spells it.
    OCTAVO_ASSIGN_OR_RETURN(Value name, FollowPath(runtime, members[0], arguments[0],
                                                   arguments.Has(1) ? &arguments[1] : nullptr));
    groups.push_back(Value::MakeGroup(std::move(name), Value::MakeList(std::move(members))));
    begin = end;
  }
  return Value::MakeList(std::move(groups));
}

Result<Value> FilterBatch(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, self));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t size, arguments.Int(0, 0));
  if (size < 1 || size > kMaxPieces) return InvalidArgument("batch: a bad size");
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items.size(); begin += static_cast<size_t>(size)) {
    const size_t end = std::min(begin + static_cast<size_t>(size), items.size());
    std::vector<Value> batch(items.begin() + static_cast<std::ptrdiff_t>(begin),
                             items.begin() + static_cast<std::ptrdiff_t>(end));
    if (arguments.Has(1) && !arguments[1].is_none()) {
      OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(static_cast<size_t>(size)));
      batch.resize(static_cast<size_t>(size), arguments[1]);
    }
    batches.push_back(Value::MakeList(std::move(batch)));
  }
  return MakeIterator(std::move(batches));
}

Result<Value> FilterSlice(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, self));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t count, arguments.Int(0, 0));
  if (count < 1 || count > kMaxPieces) return InvalidArgument("slice: a bad number of slices");
  const auto slices = static_cast<size_t>(count);
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(slices));
  const size_t per_slice = items.size() / slices;
  const size_t longer = items.size() % slices;
  std::vector<Value> result;
  size_t begin = 0;
  for (size_t i = 0; i < slices; ++i) {
    const size_t size = per_slice + (i < longer ? 1 : 0);
    std::vector<Value> slice(items.begin() + static_cast<std::ptrdiff_t>(begin),
                             items.begin() + static_cast<std::ptrdiff_t>(begin + size));
    if (arguments.Has(1) && !arguments[1].is_none() && i >= longer) slice.push_back(arguments[1]);
    result.push_back(Value::MakeList(std::move(slice)));
    begin += size;
  }
  return MakeIterator(std::move(result));
}

}  // namespace octavo::jinja
