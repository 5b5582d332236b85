// Runs that are killed, stopped or refused, and go on: the output is the one of a run in one piece.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "compress/pipeline.h"
#include "compress/recipe.h"
#include "io/work_folder.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;
using testing::TestContext;

namespace fs = std::filesystem;

const fs::path kStories = fs::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
const fs::path kText = fs::path(OCTAVO_SOURCE_DIR) / "data/text/tinystories.txt";
constexpr int kBlocks = 5;
constexpr int kSteps = kBlocks + 3;  // of progress: blocks, then three of the saving

constexpr int kKilled = 99;

// Counts steps, and ends the process at one of them as kill -9 would.
class CountingProgress : public Progress {
 public:
  explicit CountingProgress(int kill_at = 0) : kill_at_(kill_at) {}
  void Start(std::string_view, int64_t) override {}
  void Advance(int64_t, std::string_view) override {
    if (++steps_ == kill_at_) _exit(kKilled);
  }
  void Finish() override {}
  int steps() const { return steps_; }

 private:
  int kill_at_;
  int steps_ = 0;
};

class Resume : public ::testing::Test {
 protected:
  QuantizeOptions Options(const std::string& out) const {
    QuantizeOptions options;
    options.model = kStories;
    options.out = folder_.path() / out;
    options.calibration = kText;
    options.dataset = {.num_samples = 8, .max_length = 64, .shuffle = false};
    return options;
  }

  // Everything that leaves something behind in a block, and the embedding.
  static Recipe MakeRecipe(double smoothquant = 0.8) {
    const std::string text =
        "s_stage: {m_modifiers: {SmoothQuantModifier: {smoothing_strength: " +
        std::to_string(smoothquant) +
        "}, GPTQModifier: {ignore: [lm_head], config_groups: {a: {targets: [Linear], weights: "
        "{strategy: channel}, input_activations: {strategy: token, dynamic: true}}, b: {targets: "
        "[Embedding], weights: {strategy: channel}}}, kv_cache_scheme: {num_bits: 8, type: "
        "float}}}}";
    return ParseRecipe(text, "recipe", NullLogger()).value();
  }

  Result<QuantizationReport> Run(const QuantizeOptions& options, Progress& progress) {
    const TestContext context;
    Context with_progress{.pool = const_cast<ThreadPool&>(context.pool),
                          .isa = context.context.isa,
                          .progress = progress};
    const Recipe recipe =
        recipe_.empty() ? MakeRecipe() : ParseRecipe(recipe_, "recipe.yaml", NullLogger()).value();
    return Quantize(options, recipe, with_progress);
  }
  Result<QuantizationReport> Run(const QuantizeOptions& options) {
    return Run(options, NullProgress());
  }

  // In a process of its own, killed at a step. Returns its exit code.
  int RunKilled(const QuantizeOptions& options, int kill_at) {
    const pid_t child = fork();
    if (child == 0) {
      CountingProgress progress(kill_at);
      _exit(Run(options, progress).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Everything in the folder but times.
  static std::map<std::string, std::string> Content(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      files[entry.path().filename()] = ReadFile(entry.path()).value();
    }
    Value report = ParseJson(files.at("quantization_report.json"), "report").value();
    for (const char* key : {"seconds", "cpu_seconds", "peak_rss_bytes"}) report.Erase(key);
    files["quantization_report.json"] = WriteJson(report);
    return files;
  }

  fs::path Unfinished(const QuantizeOptions& options) const {
    return options.out.string() + ".unfinished";
  }

  TemporaryFolder folder_;
  std::string recipe_;  // of Run, where it is another one
};

TEST_F(Resume, KilledAfterEveryStepItEndsWithTheSameBytes) {
  const QuantizeOptions whole = Options("whole");
  CountingProgress counted;
  ASSERT_OK(Run(whole, counted));
  ASSERT_EQ(counted.steps(), kSteps);
  const auto expected = Content(whole.out);
  for (int kill_at = 1; kill_at <= kSteps; ++kill_at) {
    SCOPED_TRACE(kill_at);
    const QuantizeOptions options = Options("killed" + std::to_string(kill_at));
    ASSERT_EQ(RunKilled(options, kill_at), kKilled);
    EXPECT_FALSE(fs::exists(options.out));
    CountingProgress rest;
    const auto report = Run(options, rest);
    ASSERT_OK(report);
    EXPECT_EQ(rest.steps(), kSteps - std::min(kill_at, kBlocks)) << "blocks were done again";
    EXPECT_EQ(std::ssize(report->layers), 7 * kBlocks + 1);
    EXPECT_EQ(Content(options.out), expected);
    EXPECT_FALSE(fs::exists(Unfinished(options)));
  }
}

TEST_F(Resume, KilledAgainAndAgainItGetsThere) {
  const QuantizeOptions whole = Options("whole");
  ASSERT_OK(Run(whole));
  const QuantizeOptions options = Options("out");
  for (int block = 0; block < kBlocks; ++block) ASSERT_EQ(RunKilled(options, 1), kKilled) << block;
  ASSERT_OK(Run(options));
  EXPECT_EQ(Content(options.out), Content(whole.out));
}

// What was rotated before is rotated again, to the same bytes: folded and stored matrices, a tied
// head, statistics of rotated inputs.
TEST_F(Resume, ARotatedModelGoesOnTheSame) {
  recipe_ =
      "s_stage: {m_modifiers: {SpinQuantModifier: {rotations: [R1, R2, R3, R4], transform_type: "
      "random-hadamard, transform_block_size: 4, seed: 5}, QuIPModifier: {transform_block_size: "
      "4}, GPTQModifier: "
      "{scheme: "
      "W8A8}}}";
  const QuantizeOptions whole = Options("whole");
  ASSERT_OK(Run(whole));
  const auto expected = Content(whole.out);
  for (const int kill_at : {1, kBlocks, kSteps}) {
    SCOPED_TRACE(kill_at);
    const QuantizeOptions options = Options("killed" + std::to_string(kill_at));
    ASSERT_EQ(RunKilled(options, kill_at), kKilled);
    ASSERT_OK(Run(options));
    EXPECT_EQ(Content(options.out), expected);
  }
}

// Between two lines of the journal: what the line does not name is done again.
TEST_F(Resume, ALineThatWasCutOffIsDoneAgain) {
  const QuantizeOptions whole = Options("whole");
  ASSERT_OK(Run(whole));
  const QuantizeOptions options = Options("out");
  ASSERT_EQ(RunKilled(options, 3), kKilled);
  std::ofstream(Unfinished(options) / "journal", std::ios::app) << "{\"block\": 3, \"tens";
  std::ofstream(Unfinished(options) / "hidden.next") << "half";
  CountingProgress rest;
  ASSERT_OK(Run(options, rest));
  EXPECT_EQ(rest.steps(), kSteps - 3);
  EXPECT_EQ(Content(options.out), Content(whole.out));
}

TEST_F(Resume, KilledBetweenTheMoveAndTheClearingUpItIsFinished) {
  const QuantizeOptions options = Options("out");
  ASSERT_EQ(RunKilled(options, kSteps), kKilled);
  fs::rename(Unfinished(options) / "checkpoint", options.out);
  const auto before = Content(options.out);
  const auto report = Run(options);
  ASSERT_OK(report);
  EXPECT_EQ(std::ssize(report->layers), 7 * kBlocks + 1);
  EXPECT_EQ(Content(options.out), before);
  EXPECT_FALSE(fs::exists(Unfinished(options)));
  EXPECT_EQ(Run(options).status().code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(fs::exists(Unfinished(options)));
}

TEST_F(Resume, AnotherRequestIsRefusedAndSaysWhatChanged) {
  const fs::path model = folder_.path() / "model";
  fs::copy(kStories, model);
  const fs::path calibration = folder_.path() / "calibration.txt";
  fs::copy(kText, calibration);
  QuantizeOptions options = Options("out");
  options.model = model;
  options.calibration = calibration;
  ASSERT_EQ(RunKilled(options, 2), kKilled);

  const TestContext context;
  const auto refused = [&](const QuantizeOptions& other, const Recipe& recipe,
                           const std::string& what) {
    const auto result = Quantize(other, recipe, context.context);
    ASSERT_FALSE(result.ok());
    const std::string message = result.status().message();
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_NE(message.find("--restart"), std::string::npos) << message;
    EXPECT_TRUE(fs::exists(Unfinished(options) / "journal"));
  };
  QuantizeOptions other = options;
  other.dataset.num_samples = 7;
  refused(other, MakeRecipe(), "num_samples was 8, is 7");
  other = options;
  other.propagate = Propagate::kNone;
  refused(other, MakeRecipe(), "propagate was");
  refused(options, MakeRecipe(0.5), "recipe was");
  fs::last_write_time(model / "config.json", fs::file_time_type::clock::now());
  refused(options, MakeRecipe(), "model config.json was");
  fs::remove(model / "config.json");
  fs::copy(kStories / "config.json", model / "config.json");
  std::ofstream(calibration, std::ios::app) << "One more line.\n";
  refused(options, MakeRecipe(), "calibration was");

  options.restart = true;
  CountingProgress all;
  ASSERT_OK(Run(options, all));
  EXPECT_EQ(all.steps(), kSteps);
}

TEST_F(Resume, DamagedLeftoversAreRefusedWithTheRemedy) {
  QuantizeOptions options = Options("out");
  ASSERT_EQ(RunKilled(options, 2), kKilled);
  const fs::path folder = Unfinished(options);
  const std::string journal = ReadFile(folder / "journal").value();
  const std::string head = journal.substr(0, journal.find('\n') + 1);
  const std::string first =
      journal.substr(head.size(), journal.find('\n', head.size()) + 1 - head.size());
  const std::string damaged[] = {
      "",
      "\n",
      "no json\n",
      "{}\n",
      "{\"octavo_journal\": 7, \"request\": {}}\n",
      head + "null\n",
      head + "[[[[[[\n" + first,
      head + first + first,
      head + "{\"block\": 1, \"tensors\": [], \"layers\": []}\n",
      head + "{\"block\": 0, \"tensors\": [1], \"layers\": []}\n",
      head + "{\"block\": 0, \"tensors\": [], \"layers\": [{}]}\n",
      head + "{\"block\": 0, \"tensors\": [], \"layers\": [], \"seconds\": \"x\"}\n",
      head + "{\"block\": 0}\n",
      head + "{\"saved\": \"x\"}\n",
      head + "{\"saved\": 1}\n" + first,
      head + "{\"block\": 0, \"tensors\": [\"no.such.tensor\"], \"layers\": []}\n",
  };
  for (const std::string& text : damaged) {
    SCOPED_TRACE(text.substr(text.size() > 100 ? text.size() - 100 : 0));
    std::ofstream(folder / "journal") << text;
    const auto result = Run(options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kCorruptFile) << result.status().ToString();
    EXPECT_NE(result.status().message().find("--restart"), std::string::npos)
        << result.status().message();
    ASSERT_TRUE(fs::exists(folder)) << "a damaged journal is for its owner to drop";
  }
  // The journal is whole, but what it names is not.
  std::ofstream(folder / "journal") << journal;
  fs::resize_file(folder / "hidden.2", 100);
  EXPECT_EQ(Run(options).status().code(), StatusCode::kCorruptFile);
  fs::remove(folder / "hidden.2");
  EXPECT_NE(Run(options).status().message().find("--restart"), std::string::npos);
  std::ofstream(folder / "checkpoint/model.safetensors", std::ios::in | std::ios::out) << "other";
  EXPECT_EQ(Run(options).status().code(), StatusCode::kCorruptFile);

  options.restart = true;
  EXPECT_TRUE(Run(options).ok());
}

TEST_F(Resume, ARunThatForgetsForceDoesNotCostTheWork) {
  QuantizeOptions options = Options("out");
  ASSERT_OK(Run(options));
  const auto expected = Content(options.out);
  options.force = true;
  ASSERT_EQ(RunKilled(options, 2), kKilled);
  options.force = false;
  EXPECT_EQ(Run(options).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Content(options.out), expected);
  options.force = true;
  CountingProgress rest;
  ASSERT_OK(Run(options, rest));
  EXPECT_EQ(rest.steps(), kSteps - 2);
  EXPECT_EQ(Content(options.out), expected);
}

TEST_F(Resume, AFolderThatIsNotOursIsNotCleared) {
  QuantizeOptions options = Options("out");
  fs::create_directories(Unfinished(options));
  std::ofstream(Unfinished(options) / "thesis.txt") << "x";
  const auto refused = Run(options);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_NE(refused.status().message().find("thesis.txt"), std::string::npos)
      << refused.status().message();
  EXPECT_TRUE(fs::exists(Unfinished(options) / "thesis.txt"));
}

TEST_F(Resume, TwoRunsOnOneOutputAreRefused) {
  const QuantizeOptions options = Options("out");
  const auto held = WorkFolder::Open(options.out);
  ASSERT_OK(held);
  const auto refused = Run(options);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_NE(refused.status().message().find("another run"), std::string::npos)
      << refused.status().message();
}

TEST_F(Resume, AFullDiskStopsARunThatGoesOnLater) {
  const QuantizeOptions whole = Options("whole");
  ASSERT_OK(Run(whole));
  const QuantizeOptions options = Options("out");
  ASSERT_EQ(RunKilled(options, 2), kKilled);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto stopped = Run(options);
    const bool told =
        stopped.status().code() == StatusCode::kIo &&
        stopped.status().message().find("give the same command again") != std::string::npos;
    _exit(told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  CountingProgress rest;
  ASSERT_OK(Run(options, rest));
  EXPECT_EQ(rest.steps(), kSteps - 2);
  EXPECT_EQ(Content(options.out), Content(whole.out));
}

TEST_F(Resume, WithoutCalibrationDataToo) {
  RecipeFlags flags;
  flags.scheme = "W8A8";
  flags.gptq = false;
  const Recipe recipe = octavo::MakeRecipe(flags, NullLogger()).value();
  QuantizeOptions options = Options("whole");
  options.calibration.clear();
  const TestContext context;
  ASSERT_OK(Quantize(options, recipe, context.context));
  const auto expected = Content(options.out);
  options.out = folder_.path() / "out";
  const pid_t child = fork();
  if (child == 0) {
    TestContext in_child;
    CountingProgress progress(3);
    Quantize(options, recipe,
             {.pool = in_child.pool, .isa = in_child.context.isa, .progress = progress})
        .ok();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), kKilled);
  ASSERT_OK(Quantize(options, recipe, context.context));
  EXPECT_EQ(Content(options.out), expected);
}

}  // namespace
}  // namespace octavo
