// A command of the `octavo` program: one file each, one line in commands.inc.
#pragma once

#include <functional>
#include <string>

#include "base/context.h"
#include "base/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace octavo {

// Does the work of a command. Prints its result to stdout; an error goes up to main, which prints
// it and picks the exit code.
using CommandBody = std::function<Status(const Context& context)>;

struct Command {
  std::string name;
  // Declares options and help on `app` and returns what runs once they are parsed.
  CommandBody (*add)(CLI::App& app);
};

// Prints text to stdout as it is.
void Print(std::string_view text);

// "--json": a flag that many commands have.
void AddJsonFlag(CLI::App& app, bool* json);

}  // namespace octavo
