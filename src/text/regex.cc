#include "text/regex.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/unicode.h"

namespace octavo {
namespace {

// Steps from one starting point. The patterns of real tokenizers take a few a character, so a
// megabyte without a boundary passes; catastrophic ones are stopped within a second.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 256 << 10;  // of the interpreter
constexpr uint32_t kDepthLimit = 10'000'000;
constexpr uint32_t kNestLimit = 100;
constexpr size_t kMaxPatternBytes = 64 << 10;

// Frees PCRE2's objects.
struct Pcre2Deleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
template <typename T>
using Pcre2Ptr = std::unique_ptr<T, Pcre2Deleter>;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  const int length = pcre2_get_error_message(code, buffer, sizeof(buffer));
  if (length < 0) return fmt::format("PCRE2 error {}", code);
  return {buffer, buffer + length};
}

Status CheckLength(std::string_view pattern) {
  if (pattern.size() <= kMaxPatternBytes) return OkStatus();
  return CorruptFile(fmt::format("the pattern has {} bytes, at most {} are accepted",
                                 pattern.size(), kMaxPatternBytes));
}

PCRE2_SPTR Subject(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

struct Regex::Code {
  Pcre2Ptr<pcre2_code> code;
  std::string pattern;  // as written, for messages
  bool jit = false;
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::Compile(std::string_view pattern) {
  OCTAVO_RETURN_IF_ERROR(CheckLength(pattern));
  OCTAVO_ASSIGN_OR_RETURN(const std::string translated, OnigurumaToPcre2(pattern));
  // In Oniguruma's Ruby syntax ^ and $ always stand for the ends of lines.
  return CompilePcre2(pattern, translated, /*lines=*/true);
}

Result<Regex> Regex::CompilePython(std::string_view pattern) {
  OCTAVO_RETURN_IF_ERROR(CheckLength(pattern));
  std::string translated;
  for (size_t at = 0; at < pattern.size(); ++at) {
    translated += pattern[at];
    if (pattern[at] != '\\' || at + 1 == pattern.size()) continue;
    const char escaped = pattern[++at];
    translated += escaped == 'Z' ? 'z' : escaped;
  }
  return CompilePcre2(pattern, translated, /*lines=*/false);
}

// `lines`: whether ^ and $ stand for the ends of lines.
Result<Regex> Regex::CompilePcre2(std::string_view pattern, const std::string& translated,
                                  bool lines) {
  Pcre2Ptr<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  pcre2_set_parens_nest_limit(context.get(), kNestLimit);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE position = 0;
  auto code = std::make_unique<Code>();
  code->pattern = pattern;
  const uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | (lines ? PCRE2_MULTILINE : 0);
  code->code.reset(pcre2_compile(Subject(translated), translated.size(), options, &error, &position,
                                 context.get()));
  if (code->code == nullptr) {
    return CorruptFile(fmt::format("the pattern \"{}\" does not compile: {} (at byte {} of \"{}\")",
                                   pattern, ErrorText(error), position, translated));
  }
  code->jit = pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(code));
}

struct Regex::Searcher::State {
  const Code& code;
  Pcre2Ptr<pcre2_match_data> data;
  Pcre2Ptr<pcre2_match_context> context;

  // Calls `take` with each match and PCRE2's offsets of it and its groups.
  template <typename Take>
  Status ForEachMatch(std::string_view text, Take take);

  // The next match at or after `start`. The just-in-time code has a small stack; what overflows it
  // is matched by the interpreter, which takes memory from the heap.
  int Match(std::string_view text, size_t start) {
    const auto match = code.jit ? pcre2_jit_match : pcre2_match;
    int result = match(code.code.get(), Subject(text), text.size(), start, PCRE2_NO_UTF_CHECK,
                       data.get(), context.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code.code.get(), Subject(text), text.size(), start,
                           PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(), context.get());
    }
    return result;
  }
};

Regex::Searcher::Searcher(const Regex& regex) : state_(new State{*regex.code_, {}, {}}) {
  state_->data.reset(pcre2_match_data_create(1, nullptr));
  state_->context.reset(pcre2_match_context_create(nullptr));
  OCTAVO_CHECK(state_->data != nullptr && state_->context != nullptr);
  pcre2_set_match_limit(state_->context.get(), kMatchLimit);
  pcre2_set_heap_limit(state_->context.get(), kHeapLimitKib);
  pcre2_set_depth_limit(state_->context.get(), kDepthLimit);
}
Regex::Searcher::~Searcher() = default;

template <typename Take>
Status Regex::Searcher::State::ForEachMatch(std::string_view text, Take take) {
  size_t start = 0;
  size_t last_end = std::string_view::npos;
  while (start <= text.size()) {
    const int result = Match(text, start);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return InvalidArgument(
          fmt::format("the pattern \"{}\" cannot be matched against this text "
                      "of {} bytes (from byte {}): {}",
                      code.pattern, text.size(), start, ErrorText(result)));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    const bool empty = range[0] >= range[1];  // \K can even swap the ends
    if (empty && last_end == range[1]) {
      start += start < text.size() ? Utf8Length(text[start]) : 1;
      continue;
    }
    start = std::max(start, size_t{range[1]});
    last_end = range[1];
    take(ByteRange{empty ? range[1] : range[0], range[1]}, range);
  }
  return OkStatus();
}

Status Regex::Searcher::FindAll(std::string_view text, std::vector<ByteRange>& matches) {
  matches.clear();
  return state_->ForEachMatch(
      text, [&](ByteRange match, const PCRE2_SIZE*) { matches.push_back(match); });
}

Status Regex::Searcher::FindAllGroups(std::string_view text,
                                      std::vector<std::vector<std::string_view>>& matches) {
  matches.clear();
  state_->data.reset(pcre2_match_data_create_from_pattern(state_->code.code.get(), nullptr));
  OCTAVO_CHECK(state_->data != nullptr);
  const uint32_t pairs = pcre2_get_ovector_count(state_->data.get());
  return state_->ForEachMatch(text, [&](ByteRange match, const PCRE2_SIZE* range) {
    std::vector<std::string_view> groups;
    for (uint32_t pair = 1; pair < pairs; ++pair) {
      const PCRE2_SIZE begin = range[2 * pair];
      const PCRE2_SIZE end = range[2 * pair + 1];
      groups.push_back(begin == PCRE2_UNSET ? "" : text.substr(begin, end - begin));
    }
    if (pairs == 1) groups.push_back(text.substr(match.begin, match.end - match.begin));
    matches.push_back(std::move(groups));
  });
}

}  // namespace octavo
