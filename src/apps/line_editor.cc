#include "apps/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <iostream>
#include <utility>

namespace octavo {

namespace {

constexpr int kHistoryLines = 1000;

}  // namespace

struct LineEditor::State {
  explicit State(std::string shown) : prompt(std::move(shown)) {
    std::setlocale(LC_CTYPE, "");  // the editor counts characters, not bytes
    editor = el_init("octavo", stdin, stdout, stderr);
    lines = history_init();
    HistEvent event;
    history(lines, &event, H_SETSIZE, kHistoryLines);
    history(lines, &event, H_SETUNIQUE, 1);
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, &State::Prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, lines);
    el_source(editor, nullptr);  // the user's ~/.editrc
  }
  ~State() {
    history_end(lines);
    el_end(editor);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static char* Prompt(EditLine* editor) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return state->prompt.data();
  }

  std::string prompt;
  EditLine* editor = nullptr;
  History* lines = nullptr;
};

LineEditor::LineEditor(std::string prompt) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
    state_ = std::make_unique<State>(std::move(prompt));
}

LineEditor::~LineEditor() = default;

LineEditor::Outcome LineEditor::ReadLine(std::string* line) {
  line->clear();
  errno = 0;
  if (state_ == nullptr) {
    if (std::getline(std::cin, *line)) return Outcome::kLine;
    return errno == EINTR ? Outcome::kInterrupted : Outcome::kEnd;
  }
  int count = 0;
  const char* typed = el_gets(state_->editor, &count);
  if (typed == nullptr) {
    const bool interrupted = count < 0 && errno == EINTR;
    if (interrupted) el_reset(state_->editor);
    return interrupted ? Outcome::kInterrupted : Outcome::kEnd;
  }
  line->assign(typed, static_cast<size_t>(count));
  HistEvent event;
  if (line->find_first_not_of(" \n") != std::string::npos)
    history(state_->lines, &event, H_ENTER, typed);
  while (line->ends_with('\n') || line->ends_with('\r')) line->pop_back();
  return Outcome::kLine;
}

}  // namespace octavo
