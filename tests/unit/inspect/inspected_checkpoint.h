// A checkpoint of the goldens, copied where tests may damage it, and inspected.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "inspect/inspection.h"
#include "support/golden_files.h"
#include "tensor/tensor.h"

namespace octavo::testing {

using TensorMap = std::map<std::string, Tensor>;

class InspectedCheckpoint {
 public:
  // tests/data/checkpoints/<name>, after `damage` changed its tensors and `rewrite` its config.
  explicit InspectedCheckpoint(const std::string& name,
                               const std::function<void(TensorMap*)>& damage = {},
                               const std::function<void(Value*)>& rewrite = {}) {
    const std::filesystem::path source = TestData("checkpoints/" + name);
    const std::string text = ReadFile(source / "config.json", 1 << 20).value();
    Value config = ParseJson(text, "config.json").value();
    if (rewrite) rewrite(&config);
    EXPECT_TRUE(WriteFileAtomically(folder() / "config.json", WriteJson(config)).ok());
    if (!damage) {
      std::filesystem::copy_file(source / "model.safetensors", folder() / "model.safetensors");
      return;
    }
    const SafetensorsFile file = SafetensorsFile::Open(source / "model.safetensors").value();
    TensorMap tensors;
    for (const auto& [tensor, view] : file.tensors()) tensors[tensor] = Tensor::CopyOf(view);
    damage(&tensors);
    std::vector<std::pair<std::string, TensorView>> views;
    for (const auto& [tensor, owned] : tensors) views.emplace_back(tensor, owned);
    EXPECT_TRUE(WriteSafetensors(folder() / "model.safetensors", views).ok());
  }

  const std::filesystem::path& folder() const { return folder_.path(); }
  const Context& context() const { return context_.context; }

  Inspection Inspect() const {
    auto inspection = InspectCheckpoint(folder(), context());
    EXPECT_TRUE(inspection.ok()) << inspection.status().ToString();
    return std::move(inspection).value();
  }

 private:
  TemporaryFolder folder_;
  TestContext context_;
};

}  // namespace octavo::testing
