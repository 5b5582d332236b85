// Python's generator against vectors that Python made.
#include "eval/python_random.h"

#include <gtest/gtest.h>

#include "unit/eval/eval_data.h"

namespace octavo {
namespace {

using testing::IntegersOf;
using testing::ReadEvalJson;

TEST(PythonRandom, DrawsWhatPythonDraws) {
  const Value vectors = ReadEvalJson("statistics/python_random.json");
  for (const Value& vector : vectors.as_array()) {
    const int64_t seed = vector.Find("seed")->as_int();
    SCOPED_TRACE(seed);
    PythonRandom random(static_cast<uint64_t>(seed));
    for (const Value& value : vector.Find("random")->as_array())
      EXPECT_EQ(random.Random(), value.as_double());
    for (const Value& value : vector.Find("getrandbits_13")->as_array())
      EXPECT_EQ(random.GetRandBits(13), value.as_int());
    for (const Value& value : vector.Find("choices_of_7")->as_array())
      EXPECT_EQ(random.Choice(7), value.as_int());
    for (const Value& sample : vector.Find("sample")->as_array()) {
      const Value::Array& parts = sample.as_array();
      EXPECT_EQ(random.Sample(parts[0].as_int(), parts[1].as_int()), IntegersOf<int64_t>(parts[2]));
    }
  }
}

// random.Random(2 ** 40 + 3).getrandbits(32), made with Python: a seed of two words.
TEST(PythonRandom, ASeedBeyond32Bits) {
  PythonRandom random((uint64_t{1} << 40) + 3);
  EXPECT_EQ(random.GetRandBits(32), 943978446U);
}

TEST(PythonRandom, OneGeneratorRunsThroughAllTestProblems) {
  const Value fewshot = ReadEvalJson("gsm8k/fewshot.json");
  PythonRandom random(static_cast<uint64_t>(fewshot.Find("seed")->as_int()));
  const int64_t pool = fewshot.Find("pool")->as_int();
  const int64_t shots = fewshot.Find("shots")->as_int();
  int64_t row = 0;
  for (const Value& indices : fewshot.Find("indices")->as_array())
    ASSERT_EQ(random.Sample(pool, shots), IntegersOf<int64_t>(indices)) << "row " << row++;
}

}  // namespace
}  // namespace octavo
