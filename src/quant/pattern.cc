#include "quant/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

namespace octavo {

namespace {

constexpr std::string_view kRegexPrefix = "re:";
constexpr size_t kMaxPatternBytes = 64 << 10;
constexpr uint32_t kMaxParentheses = 100;
// A module name has some 50 letters, so an honest pattern needs a few thousand steps.
constexpr uint32_t kMaxMatchSteps = 1'000'000;
constexpr uint32_t kMaxDepth = 10'000;
constexpr uint32_t kMaxHeapKib = 16 << 10;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof(buffer)) < 0) return "unknown error";
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR Bytes(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

bool MatchesClass(std::string_view pattern, std::string_view class_name) {
  if (pattern == class_name || pattern == "Module") return true;
  return pattern == "LinearBase" && class_name == "Linear";
}

}  // namespace

struct ModulePattern::Regex {
  pcre2_code* code = nullptr;

  Regex() = default;
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;
  ~Regex() { pcre2_code_free(code); }
};

ModulePattern::ModulePattern() = default;
ModulePattern::ModulePattern(ModulePattern&&) noexcept = default;
ModulePattern& ModulePattern::operator=(ModulePattern&&) noexcept = default;
ModulePattern::~ModulePattern() = default;

Result<ModulePattern> ModulePattern::Make(std::string_view text) {
  ModulePattern pattern;
  pattern.text_ = text;
  if (!text.starts_with(kRegexPrefix)) return pattern;

  const std::string_view expression = text.substr(kRegexPrefix.size());
  if (expression.size() > kMaxPatternBytes)
    return InvalidArgument(
        fmt::format("a regular expression of {} bytes, at most {} are read: \"{}...\"",
                    expression.size(), kMaxPatternBytes, text.substr(0, 40)));
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_parens_nest_limit(context.get(), kMaxParentheses);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pattern.regex_ = std::make_unique<Regex>();
  pattern.regex_->code = pcre2_compile(Bytes(expression), expression.size(),
                                       PCRE2_ANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error,
                                       &offset, context.get());
  if (pattern.regex_->code == nullptr)
    return InvalidArgument(
        fmt::format("the regular expression \"{}\" does not compile: {} at "
                    "character {}",
                    text, ErrorText(error), offset));
  return pattern;
}

Result<MatchKind> ModulePattern::Match(const ModuleName& module) const {
  if (regex_ == nullptr) {
    if (module.name == text_) return MatchKind::kName;
    return MatchesClass(text_, module.class_name) ? MatchKind::kClass : MatchKind::kNone;
  }
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMaxMatchSteps);
  pcre2_set_depth_limit(context.get(), kMaxDepth);
  pcre2_set_heap_limit(context.get(), kMaxHeapKib);
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const int matched = pcre2_match(regex_->code, Bytes(module.name), module.name.size(), 0, 0,
                                  data.get(), context.get());
  if (matched >= 0) return MatchKind::kRegex;
  if (matched == PCRE2_ERROR_NOMATCH) return MatchKind::kNone;
  return InvalidArgument(fmt::format("the regular expression \"{}\" fails on \"{}\": {}", text_,
                                     module.name, ErrorText(matched)));
}

bool LooksLikeLinear(std::string_view tensor_name, const Shape& shape) {
  constexpr std::string_view kSuffix = ".weight";
  if (!tensor_name.ends_with(kSuffix) || shape.size() != 2) return false;
  const std::string_view module = tensor_name.substr(0, tensor_name.size() - kSuffix.size());
  const std::string_view last = module.substr(module.rfind('.') + 1);
  return last.find("embed") == std::string_view::npos && !last.ends_with("norm");
}

}  // namespace octavo
