// The report of `octavo compare --html`, opened by a browser: no error on its console, and a
// screenshot to look at. Slow; skipped where there is no chromium.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;
using testing::TestData;

const std::string kStories = Repository("data/stories260k");

class Report : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "there is no chromium (./dev test installs it)";
    for (const std::string scheme : {"W8A16", "W4A16"}) {
      const std::string out = folder_.path() / scheme;
      const Outcome made = RunOctavo({"quantize", kStories, "-o", out, "--scheme", scheme,
                                      "--method", "rtn", "--group-size", "4", "-q"});
      ASSERT_EQ(made.exit_code, 0) << made.err;
    }
    const Outcome outcome = RunOctavo({"compare",
                                       kStories,
                                       folder_.path() / "W8A16",
                                       folder_.path() / "W4A16",
                                       "--text",
                                       Repository("data/text/tinystories.txt"),
                                       "--window",
                                       "128",
                                       "--stride",
                                       "128",
                                       "--max-windows",
                                       "8",
                                       "--tasks",
                                       "hellaswag",
                                       "--limit",
                                       "20",
                                       "--data",
                                       TestData("eval/docs"),
                                       "--max-kl",
                                       "0.01",
                                       "--html",
                                       page_,
                                       "-q"});
    ASSERT_NE(outcome.exit_code, 1) << outcome.err;
  }

  // What the browser writes to stderr while it opens the page.
  std::string Open(const std::string& flags, const std::filesystem::path& page) {
    const std::string log = folder_.path() / "log";
    const std::string command =
        "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
        "--user-data-dir=" +
        std::string(folder_.path() / "profile") + " --enable-logging=stderr --v=0 " + flags +
        " file://" + page.string() + " >/dev/null 2>" + log;
    EXPECT_EQ(std::system(command.c_str()), 0) << ReadFile(log).value();
    return ReadFile(log).value();
  }

  // The page with one more script.
  std::filesystem::path With(const std::string& script) {
    const auto path = folder_.path() / "scripted.html";
    EXPECT_TRUE(
        WriteFileAtomically(path, ReadFile(page_).value() + "<script>" + script + "</script>")
            .ok());
    return path;
  }

  TemporaryFolder folder_;
  const std::string page_ = folder_.path() / "report.html";
};

TEST_F(Report, OpensWithoutAnErrorOnTheConsole) {
  const auto shot = folder_.path() / "report.png";
  const std::string log = Open("--window-size=1100,2400 --screenshot=" + shot.string(), page_);
  EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
  ASSERT_TRUE(std::filesystem::exists(shot)) << log;
  EXPECT_GT(std::filesystem::file_size(shot), 50'000U) << "an empty page is smaller";

  // The check itself: an error of the page is seen.
  EXPECT_NE(Open("--screenshot=" + shot.string(), With("nowhere();")).find("CONSOLE"),
            std::string::npos);
}

TEST_F(Report, TablesSortByTheNumbersOfTheirColumns) {
  const std::string log =
      Open("--screenshot=" + std::string(folder_.path() / "sorted.png"), With(R"js(
const table = document.querySelector("table.sortable");
const column = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent === "recovery");
const values = () => [...table.tBodies[0].rows].map(row => Number(row.cells[column].dataset.value));
const rises = list => list.every((value, i) => i === 0 || list[i - 1] <= value);
table.tHead.rows[0].cells[column].click();
if (values().length < 2 || !rises(values())) throw new Error("not sorted: " + values());
table.tHead.rows[0].cells[column].click();
if (!rises(values().reverse())) throw new Error("not sorted the other way: " + values());
console.log("sorted");
)js"));
  EXPECT_NE(log.find("\"sorted\""), std::string::npos) << log;
}

}  // namespace
}  // namespace octavo
