// Runs the program as a user does and catches what it says.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/golden_files.h"

namespace octavo::testing {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;

  Value json() const { return ParseJson(out, "stdout").value(); }
};

// Runs `octavo` with the arguments; `while_running` may look on or interfere (it gets the process
// id).
inline Outcome RunOctavo(const std::vector<std::string>& arguments,
                         const std::function<void(pid_t)>& while_running = {}) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const std::string err = folder.path() / "err";
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>("octavo")};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(OCTAVO_PROGRAM, argv.data());
    _exit(127);
  }
  if (while_running) while_running(child);
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = ReadFile(out).value();
  outcome.err = ReadFile(err).value();
  return outcome;
}

inline std::filesystem::path Repository(const std::string& path) {
  return std::filesystem::path(OCTAVO_SOURCE_DIR) / path;
}

}  // namespace octavo::testing
