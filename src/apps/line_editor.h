// Lines typed by a person, with editing and a history, or read from a pipe.
#pragma once

#include <memory>
#include <string>

namespace octavo {

class LineEditor {
 public:
  // Reads stdin. Where stdin and stdout are terminals, `prompt` is shown and lines are edited.
  explicit LineEditor(std::string prompt);
  ~LineEditor();

  enum class Outcome {
    kLine,
    kInterrupted,  // a signal came (Ctrl-C); what was typed is dropped
    kEnd,          // Ctrl-D, or the end of the input
  };
  // *line has no newline at its end.
  Outcome ReadLine(std::string* line);
  bool interactive() const { return state_ != nullptr; }

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: not a terminal
};

}  // namespace octavo
