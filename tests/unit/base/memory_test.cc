// What the files of a system say of its memory.
#include "base/memory.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/temporary_folder.h"

namespace octavo {
namespace {

class Memory : public ::testing::Test {
 protected:
  void Write(const std::string& name, std::string_view content) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  }
  std::optional<int64_t> Free() const { return FreeMemory(folder_.path()); }

  testing::TemporaryFolder folder_;
};

TEST_F(Memory, IsUnknownWithoutFiles) {
  EXPECT_EQ(Free(), std::nullopt);
  EXPECT_GT(FreeMemory().value_or(0), 0);  // of the machine that runs this
}

TEST_F(Memory, IsWhatTheMachineHas) {
  Write("proc/meminfo", "MemTotal:       2000 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(Free(), 1000 * 1024);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/fs/cgroup/memory.current", "900\n");
  EXPECT_EQ(Free(), 1000 * 1024);
}

TEST_F(Memory, IsLessInAGroup) {
  Write("proc/meminfo", "MemAvailable:   1000 kB\n");
  Write("proc/self/cgroup", "0::/outer/inner\n");
  Write("sys/fs/cgroup/outer/inner/memory.max", "90000\n");
  Write("sys/fs/cgroup/outer/inner/memory.current", "40000\n");
  Write("sys/fs/cgroup/outer/inner/memory.stat", "file 9000\ninactive_file 5000\n");
  EXPECT_EQ(Free(), 55000);
  Write("sys/fs/cgroup/outer/memory.max", "50000\n");
  Write("sys/fs/cgroup/outer/memory.current", "49000\n");
  EXPECT_EQ(Free(), 1000);
}

TEST_F(Memory, IsLessInAGroupOfVersionOne) {
  Write("proc/meminfo", "MemAvailable:   1000 kB\n");
  Write("proc/self/cgroup", "5:cpu:/a\n4:memory:/a\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(Free(), 0);
}

}  // namespace
}  // namespace octavo
