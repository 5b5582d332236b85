#include "eval/answer_filter.h"

#include <fmt/format.h>

#include <utility>

#include "text/jinja/unicode.h"

namespace octavo {

namespace {

Result<Regex> CompileMember(const Value& value, std::string_view what) {
  if (!value.is_string())
    return InvalidArgument(fmt::format("{} is {}, expected a string", what, value.type_name()));
  return Regex::CompilePython(value.as_string());
}

// Python's truth of what a filter's member says.
bool IsTrue(const Value& value) {
  return value.is_bool() && value.as_bool();
}

}  // namespace

Result<AnswerFilter> AnswerFilter::FromConfig(const Value& config, bool has_custom) {
  OCTAVO_ASSIGN_OR_RETURN(std::string filter_name, config.RequireString("name"));
  AnswerFilter filter(std::move(filter_name));
  const Value* functions = config.Find("filter");
  if (functions == nullptr || !functions->is_array())
    return InvalidArgument(fmt::format("filter \"{}\" has no list \"filter\"", filter.name_));
  for (const Value& function : functions->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string name, function.RequireString("function"));
    if (name == "take_first") continue;  // there is one answer
    if (name == "custom" && has_custom) {
      filter.is_custom_ = true;
      continue;
    }
    if (name != "regex") {
      return Unsupported(
          fmt::format("filter \"{}\": the function \"{}\" is not implemented; regex and "
                      "take_first are",
                      filter.name_, name));
    }
    const Value* pattern = function.Find("regex_pattern");
    OCTAVO_ASSIGN_OR_RETURN(
        Regex regex, CompileMember(pattern != nullptr ? *pattern : Value(), "regex_pattern"));
    OCTAVO_ASSIGN_OR_RETURN(const int64_t select, function.GetInt("group_select", 0));
    OCTAVO_ASSIGN_OR_RETURN(std::string fallback, function.GetString("fallback", "[invalid]"));
    filter.steps_.push_back({std::move(regex), select, std::move(fallback)});
  }
  return filter;
}

Result<std::string> AnswerFilter::Apply(std::string_view answer) const {
  std::string text(answer);
  for (const Step& step : steps_) {
    std::vector<std::vector<std::string_view>> matches;
    OCTAVO_RETURN_IF_ERROR(Regex::Searcher(step.regex).FindAllGroups(text, matches));
    const int64_t count = std::ssize(matches);
    const int64_t index = step.group_select < 0 ? count + step.group_select : step.group_select;
    std::string kept = step.fallback;
    if (index >= 0 && index < count) {
      for (const std::string_view group : matches[static_cast<size_t>(index)]) {
        if (group.empty()) continue;
        kept = jinja::Strip(group, jinja::Side::kBoth);
        break;
      }
    }
    text = std::move(kept);
  }
  return text;
}

Result<ExactMatch> ExactMatch::FromConfig(const Value& config) {
  ExactMatch match;
  for (const auto& [key, value] : config.as_object()) {
    if (key == "metric" || key == "aggregation" || key == "higher_is_better") continue;
    if (key == "ignore_case") {
      match.ignore_case_ = IsTrue(value);
    } else if (key == "regexes_to_ignore" && value.is_array()) {
      for (const Value& pattern : value.as_array()) {
        OCTAVO_ASSIGN_OR_RETURN(Regex regex, CompileMember(pattern, key));
        match.ignored_.push_back(std::move(regex));
      }
    } else if (!value.is_null() && !(value.is_bool() && !value.as_bool())) {
      return Unsupported(
          fmt::format("exact_match: \"{}\" is not implemented; ignore_case and "
                      "regexes_to_ignore are",
                      key));
    }
  }
  return match;
}

Result<std::string> ExactMatch::Normalize(std::string_view text) const {
  std::string kept(text);
  for (const Regex& regex : ignored_) {
    std::vector<ByteRange> matches;
    OCTAVO_RETURN_IF_ERROR(Regex::Searcher(regex).FindAll(kept, matches));
    std::string rest;
    size_t from = 0;
    for (const ByteRange& match : matches) {
      rest.append(kept, from, match.begin - from);
      from = match.end;
    }
    kept = rest.append(kept, from);
  }
  return ignore_case_ ? jinja::Lower(kept) : kept;
}

Result<bool> ExactMatch::Equal(std::string_view prediction, std::string_view reference) const {
  OCTAVO_ASSIGN_OR_RETURN(const std::string found, Normalize(prediction));
  OCTAVO_ASSIGN_OR_RETURN(const std::string expected, Normalize(reference));
  return found == expected;
}

}  // namespace octavo
