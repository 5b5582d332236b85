// EnvironmentContext: a Context that reports to an Environment.
#pragma once

#include <memory>

#include "base/context.h"
#include "octavo/environment.h"

namespace octavo {

class EnvironmentContext {
 public:
  // InvalidArgument for a negative number of threads, or when OCTAVO_ISA names what the machine
  // does not have.
  static Result<std::unique_ptr<EnvironmentContext>> Make(Environment environment);
  ~EnvironmentContext();

  const Context& context() const { return context_; }

 private:
  class Log;
  class Bar;
  EnvironmentContext(Environment environment, Isa isa);

  const Environment environment_;
  ThreadPool pool_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Bar> bar_;
  Context context_;
};

}  // namespace octavo
