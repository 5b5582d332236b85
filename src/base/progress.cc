#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

namespace octavo {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kQuiet(2);          // work that ends sooner shows no bar
constexpr std::chrono::milliseconds kRedraw(100);  // often enough to look alive
constexpr int kBarWidth = 28;

std::string Duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

class TerminalProgress : public Progress {
 public:
  ~TerminalProgress() override { Finish(); }

  void Start(std::string_view label, int64_t total) override {
    label_ = label;
    total_ = std::max<int64_t>(1, total);
    done_ = 0;
    start_ = last_draw_ = Clock::now();
    drawn_ = false;
  }

  void Advance(int64_t amount, std::string_view note) override {
    done_ += amount;
    const auto now = Clock::now();
    if (now - start_ < kQuiet || now - last_draw_ < kRedraw) return;
    last_draw_ = now;
    drawn_ = true;
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const int filled = static_cast<int>(share * kBarWidth);
    std::string line =
        fmt::format("{} [{}{}] {:3.0f}%", label_, std::string(static_cast<size_t>(filled), '='),
                    std::string(static_cast<size_t>(kBarWidth - filled), ' '), share * 100);
    if (share > 0) line += " " + Duration(elapsed / share - elapsed) + " left";
    if (!note.empty()) line += fmt::format("  {}", note);
    const auto width = static_cast<size_t>(TerminalWidth() - 1);
    if (line.size() > width) line.resize(width);
    std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
    std::fflush(stderr);
  }

  void Finish() override {
    if (drawn_) std::fprintf(stderr, "\r\x1b[K");
    drawn_ = false;
  }

 private:
  std::string label_;
  int64_t total_ = 1;
  int64_t done_ = 0;
  Clock::time_point start_, last_draw_;
  bool drawn_ = false;
};

class SilentProgress : public Progress {
 public:
  void Start(std::string_view, int64_t) override {}
  void Advance(int64_t, std::string_view) override {}
  void Finish() override {}
};

}  // namespace

std::unique_ptr<Progress> MakeTerminalProgress() {
  if (isatty(STDERR_FILENO) == 0) return std::make_unique<SilentProgress>();
  return std::make_unique<TerminalProgress>();
}

Progress& NullProgress() {
  static SilentProgress progress;
  return progress;
}

}  // namespace octavo
