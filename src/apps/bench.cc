#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "apps/command.h"

namespace octavo {

extern const Command kBenchKernelsCommand;
extern const Command kBenchModelCommand;

namespace {

// What can be measured, each a command of its own.
constexpr const Command* kMeasurements[] = {&kBenchKernelsCommand, &kBenchModelCommand};

CommandBody Add(CLI::App& app) {
  app.description(
      "How fast this machine is, and Octavo on it, as shares of what the machine can do");
  app.require_subcommand(1);
  app.fallthrough();
  auto bodies = std::make_shared<std::vector<std::pair<CLI::App*, CommandBody>>>();
  for (const Command* command : kMeasurements) {
    CLI::App* sub = app.add_subcommand(command->name);
    sub->fallthrough();
    bodies->emplace_back(sub, command->add(*sub));
  }
  return [bodies](const Context& context) {
    for (const auto& [sub, body] : *bodies) {
      if (sub->parsed()) return body(context);
    }
    return InvalidArgument("nothing to measure was named");
  };
}

}  // namespace

extern const Command kBenchCommand;
const Command kBenchCommand = {"bench", Add};

}  // namespace octavo
