// Logger: where the library's words for people go. Passed in; the library itself never prints.
#pragma once

#include <memory>
#include <string_view>

namespace octavo {

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Debug(std::string_view message) = 0;
  virtual void Info(std::string_view message) = 0;
  virtual void Warning(std::string_view message) = 0;
};

enum class LogLevel { kDebug, kInfo, kWarning, kOff };

// A logger that writes to stderr what is at least `level`, coloured on a terminal.
std::unique_ptr<Logger> MakeStderrLogger(LogLevel level);
// A logger that drops everything.
Logger& NullLogger();

}  // namespace octavo
