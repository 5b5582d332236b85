// Progress and log: what reaches stderr, which is no terminal here.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "base/context.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/usage.h"

namespace octavo {
namespace {

TEST(Progress, IsSilentOffTheTerminal) {
  testing::internal::CaptureStderr();
  {
    const std::unique_ptr<Progress> progress = MakeTerminalProgress();
    progress->Start("blocks", 10);
    for (int i = 0; i < 10; ++i) progress->Advance(1, "note");
    progress->Finish();
    NullProgress().Start("nothing", 0);
    NullProgress().Advance(1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

std::string Logged(LogLevel level) {
  testing::internal::CaptureStderr();
  {
    const std::unique_ptr<Logger> logger = MakeStderrLogger(level);
    logger->Debug("{d}");
    logger->Info("{i}");
    logger->Warning("{w}");
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Logger, WritesWhatIsAtLeastItsLevel) {
  EXPECT_EQ(Logged(LogLevel::kDebug), "{d}\n{i}\nwarning: {w}\n");
  EXPECT_EQ(Logged(LogLevel::kInfo), "{i}\nwarning: {w}\n");
  EXPECT_EQ(Logged(LogLevel::kWarning), "warning: {w}\n");
  EXPECT_EQ(Logged(LogLevel::kOff), "");
}

TEST(Context, SaysWhenItIsCancelled) {
  ThreadPool pool(1);
  std::atomic<bool> cancelled = false;
  Context context{.pool = pool};
  EXPECT_TRUE(context.CheckCancelled().ok());
  context.cancelled = &cancelled;
  EXPECT_TRUE(context.CheckCancelled().ok());
  cancelled = true;
  EXPECT_EQ(context.CheckCancelled().code(), StatusCode::kCancelled);
}

TEST(Usage, CountsTimeAndMemory) {
  EXPECT_GT(CurrentRssBytes(), 0);
  EXPECT_GE(PeakRssBytes(), CurrentRssBytes() / 2);
  const double before = CpuSeconds();
  volatile uint64_t work = 0;
  while (CpuSeconds() < before + 0.01) work = work + 1;
  EXPECT_GE(CpuSeconds(), before + 0.01);
}

}  // namespace
}  // namespace octavo
