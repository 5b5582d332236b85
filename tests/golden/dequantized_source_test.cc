// Quantizing a source that is FP8 already: the same as quantizing its dequantized weights.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden/quantize_fixture.h"
#include "io/checkpoint.h"
#include "io/checkpoint_writer.h"
#include "runtime/load.h"

namespace octavo {
namespace {

class DequantizedSource : public testing::QuantizeGolden {
 protected:
  // A copy of a golden checkpoint without the golden beside it.
  std::filesystem::path Copy(const std::string& name) {
    const auto to = folder_.path() / name;
    std::filesystem::create_directory(to);
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(testing::TestData("checkpoints/" + name) / file, to / file);
    }
    return to;
  }

  // The checkpoint with plain weights.
  void WriteDequantized(const std::filesystem::path& from, const std::filesystem::path& to) {
    const auto loaded = LoadModel(from, {.prepare = {}, .load_blocks = false, .dequantize = true},
                                  context_.context);
    ASSERT_OK(loaded);
    const Checkpoint& checkpoint = (*loaded)->checkpoint();
    std::vector<PlannedTensor> plan;
    for (const std::string& name : checkpoint.Names()) {
      const TensorView view = checkpoint.Find(name).value();
      plan.push_back({name, view.dtype, view.shape});
    }
    CheckpointWriter writer = CheckpointWriter::Create(to, plan).value();
    for (const auto& tensor : plan)
      ASSERT_OK(writer.Write(tensor.name, checkpoint.Find(tensor.name).value()));
    Value config = checkpoint.config();
    config.Erase("quantization_config");
    ASSERT_OK(WriteFileAtomically(writer.unfinished_folder() / "config.json", WriteJson(config)));
    ASSERT_OK(writer.Finish());
    ASSERT_OK(writer.Commit());
  }
};

// Two layers stay as they are: those are written dequantized.
constexpr char kRecipe[] = R"(
quant_stage:
  quant_modifiers:
    GPTQModifier:
      targets: [Linear]
      ignore: [lm_head, "re:.*o_proj"]
      scheme: W8A8
)";

TEST_F(DequantizedSource, MakesWhatItsWeightsMake) {
  for (const std::string name : {"foreign-fp8-block", "foreign-fp8-static"}) {
    const auto source = Copy(name);
    WriteDequantized(source, folder_.path() / (name + "-plain"));
    std::vector<std::string> weights;
    for (const std::string& model : {source.string(), source.string() + "-plain"}) {
      QuantizeOptions options = Options("", "out-" + std::to_string(weights.size()) + name);
      options.model = model;
      const auto report = QuantizeBy(kRecipe, options, context_.context);
      ASSERT_OK(report);
      EXPECT_EQ(report->dequantized_layers, weights.empty() ? 14 : 0);
      weights.push_back(ReadFile(options.out / "model.safetensors").value());
    }
    EXPECT_EQ(weights[0], weights[1]) << name;
  }
}

TEST_F(DequantizedSource, FewBitsAreNotQuantizedAgain) {
  QuantizeOptions options = Options("", "out");
  options.model = Copy("foreign-gptq");
  const auto report = QuantizeBy(kRecipe, options, context_.context);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("is quantized already (GPTQ); quantize the original"),
            std::string::npos)
      << report.status().message();
}

}  // namespace
}  // namespace octavo
