// `octavo bench kernels`: its table, its JSON and its mistakes; no times.
#include <gtest/gtest.h>

#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::RunOctavo;

const std::vector<std::string> kQuick = {"bench",    "kernels", "--seconds", "0.001",
                                         "--memory", "1MiB",    "--filter"};

std::vector<std::string> Quick(std::vector<std::string> more) {
  std::vector<std::string> arguments = kQuick;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchKernels, TableHasRoofsAndOneRowAKernel) {
  const Outcome outcome = RunOctavo(Quick({"o_proj, n 576, k 576, m 8"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"GOP/s int8", "GFLOP/s f32", "of its roof", "oneDNN", "rival",
                           "matmul_int8", "matmul_bf16", "matmul_f32", "read, cycling over:"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

TEST(BenchKernels, JsonHoldsTheMachineAndTheRows) {
  const Outcome outcome = RunOctavo(Quick({"rope k 576, m 1", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value json = outcome.json();
  ASSERT_NE(json.Find("machine"), nullptr);
  EXPECT_FALSE(json.Find("machine")->Find("read")->as_array().empty());
  const Value::Array& rows = json.Find("kernels")->as_array();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].Find("kernel")->as_string(), "rope");
  EXPECT_GT(rows[0].Find("seconds")->as_double(), 0);
  EXPECT_GT(rows[0].Find("roof_share")->as_double(), 0);
  EXPECT_EQ(rows[0].Find("roof")->as_string(), "memory");
}

TEST(BenchKernels, MistakesAreNamed) {
  const Outcome outcome = RunOctavo(Quick({"matmul_int9"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("matmul_int9"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--list"), std::string::npos) << outcome.err;
  EXPECT_EQ(RunOctavo({"bench", "kernels", "--seconds", "-1"}).exit_code, 2);
  const Outcome list = RunOctavo({"bench", "kernels", "--list"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_NE(list.out.find("attention smollm2-135m decode"), std::string::npos);
}

}  // namespace
}  // namespace octavo
