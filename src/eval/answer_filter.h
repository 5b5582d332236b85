// What is taken from a generated answer before it is compared, and how it is compared: regex
// filters and exact_match, as lm-evaluation-harness has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "text/regex.h"

namespace octavo {

// A pipeline of "filter_list": a regex, of whose matches one is chosen, nothing but take_first, or
// a function of the task's own.
class AnswerFilter {
 public:
  // An entry {"name": ..., "filter": [{"function": "regex", ...}, {"function": "take_first"}]}.
  // Unsupported names a function that is not implemented; "custom" is where the task has one.
  static Result<AnswerFilter> FromConfig(const Value& config, bool has_custom = false);
  // The filter "none", which keeps the answer as it is.
  static AnswerFilter None() { return AnswerFilter("none"); }

  const std::string& name() const { return name_; }
  // What it keeps is the task's to say, and is a list of one answer.
  bool is_custom() const { return is_custom_; }
  // Of the chosen match the first group that is not empty, stripped; the fallback without a match.
  Result<std::string> Apply(std::string_view answer) const;

 private:
  struct Step {
    Regex regex;
    int64_t group_select = 0;  // which match; from the end where it is negative
    std::string fallback = "[invalid]";
  };
  explicit AnswerFilter(std::string name) : name_(std::move(name)) {}

  std::string name_;
  bool is_custom_ = false;
  std::vector<Step> steps_;
};

// "exact_match" with its keyword arguments: regexes_to_ignore (removed from both sides, in order),
// then ignore_case.
class ExactMatch {
 public:
  // An entry of "metric_list". Unsupported names an argument that is not implemented.
  static Result<ExactMatch> FromConfig(const Value& config);
  Result<bool> Equal(std::string_view prediction, std::string_view reference) const;

 private:
  Result<std::string> Normalize(std::string_view text) const;

  std::vector<Regex> ignored_;
  bool ignore_case_ = false;
};

}  // namespace octavo
