// Regex: patterns written for Oniguruma (what tokenizer.json holds), run by PCRE2 within limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/aligned_text.h"

namespace octavo {

class Regex {
 public:
  // Unsupported for Oniguruma syntax without a counterpart (set intersection, nested sets);
  // CorruptFile with the position for a pattern that is wrong.
  static Result<Regex> Compile(std::string_view pattern);
  // A pattern of Python's re module, without flags. PCRE2 reads it nearly as Python does: \Z is the
  // very end of the text; \s and \w go by PCRE2's Unicode properties.
  static Result<Regex> CompilePython(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Holds what matching needs, so that many texts can be searched without allocating each time. One
  // thread each; the Regex outlives it.
  class Searcher {
   public:
    explicit Searcher(const Regex& regex);
    ~Searcher();
    // Replaces `matches` by all matches in `text` (valid UTF-8), left to right, without overlap; an
    // empty match is not taken where the last match ended. InvalidArgument when the text takes the
    // pattern more steps than the limit allows.
    Status FindAll(std::string_view text, std::vector<ByteRange>& matches);
    // The same matches, but of each its groups ("" for one that took no part), or the whole where
    // the pattern has no group: re.findall. They are parts of `text`.
    Status FindAllGroups(std::string_view text,
                         std::vector<std::vector<std::string_view>>& matches);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  static Result<Regex> CompilePcre2(std::string_view pattern, const std::string& translated,
                                    bool lines);
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

// The same pattern in PCRE2's syntax; for Regex::Compile, and for tests.
Result<std::string> OnigurumaToPcre2(std::string_view pattern);

}  // namespace octavo
