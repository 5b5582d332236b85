#include "api/environment_context.h"

#include <fmt/format.h>

#include <string>

namespace octavo {

class EnvironmentContext::Log : public Logger {
 public:
  explicit Log(const Environment& environment) : environment_(environment) {}
  void Debug(std::string_view) override {}
  void Info(std::string_view message) override {
    if (environment_.on_info) environment_.on_info(message);
  }
  void Warning(std::string_view message) override {
    if (environment_.on_warning) environment_.on_warning(message);
  }

 private:
  const Environment& environment_;
};

class EnvironmentContext::Bar : public Progress {
 public:
  explicit Bar(const Environment& environment) : environment_(environment) {}
  void Start(std::string_view label, int64_t total) override {
    work_ = label;
    done_ = 0;
    total_ = total;
    Tell();
  }
  void Advance(int64_t amount, std::string_view) override {
    done_ += amount;
    Tell();
  }
  void Finish() override {}

 private:
  void Tell() {
    if (environment_.on_progress) environment_.on_progress(work_, done_, total_);
  }

  const Environment& environment_;
  std::string work_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

EnvironmentContext::EnvironmentContext(Environment environment, Isa isa)
    : environment_(std::move(environment)),
      pool_(environment_.threads),
      log_(std::make_unique<Log>(environment_)),
      bar_(std::make_unique<Bar>(environment_)),
      context_{.pool = pool_,
               .isa = isa,
               .log = *log_,
               .progress = *bar_,
               .cancelled = environment_.cancelled} {}

EnvironmentContext::~EnvironmentContext() = default;

Result<std::unique_ptr<EnvironmentContext>> EnvironmentContext::Make(Environment environment) {
  if (environment.threads < 0) {
    return InvalidArgument(
        fmt::format("threads is {}, expected 0 (all processors) or more", environment.threads));
  }
  OCTAVO_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  return std::unique_ptr<EnvironmentContext>(new EnvironmentContext(std::move(environment), isa));
}

}  // namespace octavo
