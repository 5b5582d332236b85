#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

namespace octavo {

namespace {

class SpdlogLogger : public Logger {
 public:
  explicit SpdlogLogger(LogLevel level)
      : logger_("octavo", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()) {
    // On a terminal a progress bar may stand where the line begins; it is drawn again later.
    logger_.set_pattern(isatty(STDERR_FILENO) != 0 ? "\r\x1b[K%^%v%$" : "%^%v%$");
    switch (level) {
      case LogLevel::kDebug:
        logger_.set_level(spdlog::level::debug);
        break;
      case LogLevel::kInfo:
        logger_.set_level(spdlog::level::info);
        break;
      case LogLevel::kWarning:
        logger_.set_level(spdlog::level::warn);
        break;
      case LogLevel::kOff:
        logger_.set_level(spdlog::level::off);
        break;
    }
  }
  void Debug(std::string_view message) override { logger_.debug("{}", message); }
  void Info(std::string_view message) override { logger_.info("{}", message); }
  void Warning(std::string_view message) override { logger_.warn("warning: {}", message); }

 private:
  spdlog::logger logger_;
};

class DroppingLogger : public Logger {
 public:
  void Debug(std::string_view) override {}
  void Info(std::string_view) override {}
  void Warning(std::string_view) override {}
};

}  // namespace

std::unique_ptr<Logger> MakeStderrLogger(LogLevel level) {
  return std::make_unique<SpdlogLogger>(level);
}

Logger& NullLogger() {
  static DroppingLogger logger;
  return logger;
}

}  // namespace octavo
