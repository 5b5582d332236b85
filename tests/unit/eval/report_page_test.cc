#include "eval/report_page.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/golden_files.h"
#include "unit/eval/sample_comparison.h"

namespace octavo {
namespace {

using testing::SampleComparison;
using testing::TemporaryFolder;

// What is wrong with the page's tags; empty: each is closed in its turn.
std::string TagProblem(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return "no end of " + html.substr(at, 40);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with("!DOCTYPE") || tag.ends_with("/")) continue;
    const bool closes = tag.starts_with("/");
    std::string name = tag.substr(closes ? 1 : 0);
    name = name.substr(0, name.find_first_of(" \n"));
    if (closes && (open.empty() || open.back() != name)) return "unexpected </" + name + ">";
    if (closes) {
      open.pop_back();
    } else {
      open.push_back(name);
      // What is in there is no markup.
      if (name == "style" || name == "script") at = html.find("</" + name, at);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

TEST(ReportPage, EveryTagIsClosed) {
  EXPECT_EQ(TagProblem(ReportPage(SampleComparison(1))), "");
  EXPECT_EQ(TagProblem(ReportPage(SampleComparison(3))), "");
  EXPECT_NE(TagProblem("<p><b></p>"), "") << "the check itself";
}

TEST(ReportPage, NothingIsLoadedFromElsewhere) {
  const std::string html = ReportPage(SampleComparison(3));
  for (const char* reference : {"http:", "https:", "src=", "href=", "url(", "@import", "//"})
    EXPECT_EQ(html.find(reference), std::string::npos) << reference;
}

TEST(ReportPage, HostileNamesAreText) {
  Comparison comparison = SampleComparison(2);
  const std::string hostile = "<script>alert(1)</script>\"'&<img onerror=x>";
  comparison.base.label = comparison.base.folder = hostile;
  comparison.models[0].label = comparison.models[0].scheme = hostile;
  comparison.models[0].provenance->recipe = hostile;
  comparison.models[0].provenance->hashes = {{hostile, hostile}};
  comparison.layers[0].layers[0].name = comparison.layers[0].layers[0].projection = hostile;
  comparison.layers[0].layers[0].scheme = hostile;
  comparison.layers[0].notes = {hostile};
  comparison.sensitivities[0][0].unit.layers = {hostile};
  comparison.tasks[0][0].name = hostile;
  comparison.tasks[0][0].figures[0].sentence = hostile;
  comparison.bounds[0].text = comparison.bounds[0].model = hostile;
  comparison.run.command_line = comparison.text = comparison.run.environment = hostile;
  const std::string html = ReportPage(comparison);
  EXPECT_EQ(TagProblem(html), "");
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"), std::string::npos);
}

TEST(ReportPage, HasAllThatWasMeasured) {
  const std::string html = ReportPage(SampleComparison(2));
  for (const char* part :
       {"name=\"viewport\"", "prefers-color-scheme: dark", "KL divergence from the original",
        "Calibration", "Error of each layer", "Error of each block", "Quantized alone",
        "Size against loss", "gsm8k", "recipe.yaml", "sha256", "octavo compare"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(ReportPage(SampleComparison(1)).find("Size against loss"), std::string::npos)
      << "one model is no curve";
}

TEST(ReportPage, AFileThatIsThereIsKeptUnlessForced) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "report.html";
  ASSERT_OK(WriteReportPage(path, SampleComparison(1), false));
  const Status again = WriteReportPage(path, SampleComparison(2), false);
  EXPECT_EQ(again.code(), StatusCode::kAlreadyExists);
  EXPECT_NE(again.message().find("--force"), std::string::npos);
  EXPECT_EQ(ReadFile(path).value(), ReportPage(SampleComparison(1)));
  ASSERT_OK(WriteReportPage(path, SampleComparison(2), true));
  EXPECT_EQ(ReadFile(path).value(), ReportPage(SampleComparison(2)));
}

}  // namespace
}  // namespace octavo
