// Whole runs of the quantizer on the tiny models, with the calibration data of the goldens.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "compress/pipeline.h"
#include "compress/recipe.h"
#include "io/checkpoint.h"
#include "io/checkpoint_writer.h"
#include "io/safetensors.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo::testing {

class QuantizeGolden : public ::testing::Test {
 protected:
  // The calibration ids of the goldens as JSON lines.
  void SetUp() override {
    const auto file = SafetensorsFile::Open(TestData("checkpoints/calibration.safetensors"));
    ASSERT_OK(file);
    const TensorView ids = file->Find("input_ids").value();
    const auto values = Tensor::CopyOf(ids);
    std::ofstream lines(folder_.path() / "calibration.jsonl");
    for (int64_t row = 0; row < ids.shape[0]; ++row) {
      Value::Array tokens;
      for (int64_t i = 0; i < ids.shape[1]; ++i) {
        tokens.push_back(
            int64_t{values.data<int32_t>()[static_cast<size_t>(row * ids.shape[1] + i)]});
      }
      Value json = Value::MakeObject();
      json.Set("input_ids", std::move(tokens));
      lines << WriteJson(json) << "\n";
    }
  }

  QuantizeOptions Options(const std::string& model, const std::string& out) const {
    QuantizeOptions options;
    options.model = TestData("checkpoints/" + model);
    options.out = folder_.path() / out;
    options.calibration = folder_.path() / "calibration.jsonl";
    options.dataset.shuffle = false;
    return options;
  }

  // Quantizes by the recipe that the library saved with a golden checkpoint.
  Result<QuantizationReport> QuantizeLike(const std::string& golden, const QuantizeOptions& options,
                                          const Context& context) {
    const std::string path = TestData("checkpoints/" + golden + "/recipe.yaml").string();
    return QuantizeBy(ReadFile(path).value(), options, context);
  }

  // Quantizes by a recipe's text.
  static Result<QuantizationReport> QuantizeBy(std::string_view recipe_text,
                                               const QuantizeOptions& options,
                                               const Context& context) {
    OCTAVO_ASSIGN_OR_RETURN(const Recipe recipe,
                            ParseRecipe(recipe_text, "recipe.yaml", context.log));
    return Quantize(options, recipe, context);
  }

  // A copy of a test checkpoint: what `change` (may be empty) makes of each tensor's floats, stored
  // as `dtype`.
  using Change = std::function<void(const std::string& name, Tensor* values)>;
  std::filesystem::path Copied(const std::string& model, DType dtype, const std::string& suffix,
                               const Change& change = {}) {
    const auto source = Checkpoint::Open(TestData(model)).value();
    std::vector<PlannedTensor> plan;
    for (const std::string& name : source.Names())
      plan.push_back({name, dtype, source.Find(name)->shape});
    const std::filesystem::path folder =
        folder_.path() / (std::filesystem::path(model).filename().string() + suffix);
    if (std::filesystem::exists(folder)) return folder;
    CheckpointWriter writer = CheckpointWriter::Create(folder, plan).value();
    for (const PlannedTensor& tensor : plan) {
      Tensor values = ToFloatTensor(*source.Find(tensor.name)).value();
      if (change) change(tensor.name, &values);
      EXPECT_TRUE(
          writer.Write(tensor.name, FromFloat(values.data<float>(), dtype, tensor.shape).value())
              .ok());
    }
    Value config = source.config();
    config.Set("torch_dtype", dtype == DType::kF32 ? "float32" : "bfloat16");
    EXPECT_TRUE(
        WriteFileAtomically(writer.unfinished_folder() / "config.json", WriteJson(config)).ok());
    EXPECT_TRUE(writer.Finish().ok());
    EXPECT_TRUE(writer.Commit().ok());
    return folder;
  }
  // In float32, in which nothing is lost by storing.
  std::filesystem::path Widened(const std::string& model) {
    return Copied(model, DType::kF32, "-f32");
  }

  Value Json(const std::filesystem::path& path) {
    return ParseJson(ReadFile(path).value(), path.string()).value();
  }

  TestContext context_;
  TemporaryFolder folder_;
};

}  // namespace octavo::testing
