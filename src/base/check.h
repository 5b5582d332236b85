// OCTAVO_CHECK: a broken invariant of our own ends the program, naming file, line and values.
#pragma once

#include <sstream>

namespace octavo::internal {

// Collects the message of a failed check and aborts when it goes out of scope.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives the failed branch of OCTAVO_CHECK the type void.
struct Voidify {
  void operator&(std::ostream&) {}
};

}  // namespace octavo::internal

// Never for input: what comes from a file, a flag or a request is answered by a Status.
#define OCTAVO_CHECK(condition)                     \
  __builtin_expect(static_cast<bool>(condition), 1) \
      ? static_cast<void>(0)                        \
      : ::octavo::internal::Voidify() &             \
            ::octavo::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

// As OCTAVO_CHECK, for hot code: checked only in builds with assertions.
#ifdef NDEBUG
#  define OCTAVO_DCHECK(condition) OCTAVO_CHECK(true || (condition))
#else
#  define OCTAVO_DCHECK(condition) OCTAVO_CHECK(condition)
#endif
