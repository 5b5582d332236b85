#include "base/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace octavo {
namespace {

// Sets OCTAVO_ISA, and puts it back at the end.
class IsaVariable {
 public:
  explicit IsaVariable(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old;
    if (value == nullptr) {
      unsetenv(kName);
    } else {
      setenv(kName, value, 1);
    }
  }
  ~IsaVariable() {
    if (old_) {
      setenv(kName, old_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  IsaVariable(const IsaVariable&) = delete;
  IsaVariable& operator=(const IsaVariable&) = delete;

 private:
  static constexpr const char* kName = "OCTAVO_ISA";
  std::optional<std::string> old_;
};

TEST(SelectIsa, TakesTheBestByItself) {
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const IsaVariable variable(value);
    ASSERT_TRUE(SelectIsa().ok());
    EXPECT_EQ(*SelectIsa(), DetectIsa());
  }
}

TEST(SelectIsa, ObeysEachCapThatTheMachineHas) {
  for (Isa isa : IsasUpTo(DetectIsa())) {
    const IsaVariable variable(std::string(IsaName(isa)).c_str());
    ASSERT_TRUE(SelectIsa().ok()) << IsaName(isa);
    EXPECT_EQ(*SelectIsa(), isa);
  }
}

TEST(SelectIsa, RefusesUnknownNames) {
  for (const char* value : {"sse2", "AVX2", "avx2 ", "avx512_vnni2"}) {
    const IsaVariable variable(value);
    EXPECT_EQ(SelectIsa().status().code(), StatusCode::kInvalidArgument) << value;
    EXPECT_NE(SelectIsa().status().message().find("ref, avx2, avx512 or avx512_vnni"),
              std::string::npos);
  }
}

TEST(SelectIsa, RefusesWhatTheMachineOrTheBuildLacks) {
  for (Isa isa : IsasUpTo(Isa::kAvx512Vnni)) {
    if (isa <= DetectIsa()) continue;
    const IsaVariable variable(std::string(IsaName(isa)).c_str());
    EXPECT_EQ(SelectIsa().status().code(), StatusCode::kUnsupported);
  }
#ifndef OCTAVO_SIMD
  EXPECT_EQ(DetectIsa(), Isa::kRef);
#endif
}

TEST(IsasUpTo, ListsThemWeakestFirst) {
  EXPECT_EQ(IsasUpTo(Isa::kRef), std::vector<Isa>{Isa::kRef});
  EXPECT_EQ(IsasUpTo(Isa::kAvx512), (std::vector<Isa>{Isa::kRef, Isa::kAvx2, Isa::kAvx512}));
}

TEST(CpuModelName, IsNotEmpty) {
  EXPECT_FALSE(CpuModelName().empty());
}

}  // namespace
}  // namespace octavo
