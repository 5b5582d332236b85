// Quantizing a model that is larger than the memory that the program may take.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/rng.h"
#include "e2e/run_octavo.h"
#include "io/checkpoint_writer.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::RunOctavo;
using testing::TemporaryFolder;

namespace fs = std::filesystem;

constexpr int64_t kLayers = 20;
constexpr int64_t kHidden = 512;
constexpr int64_t kInner = 1408;
constexpr int64_t kVocabulary = 150'000;  // with nothing written but the first rows
constexpr int64_t kTokens = 4096;
constexpr rlim_t kLimit = 170 << 20;

// A limit of this process, which the programs that it starts inherit.
class ScopedLimit {
 public:
  ScopedLimit(decltype(RLIMIT_DATA) what, rlim_t value) : what_(what) {
    getrlimit(what_, &before_);
    const rlimit limit{.rlim_cur = value, .rlim_max = before_.rlim_max};
    setrlimit(what_, &limit);
  }
  ~ScopedLimit() { setrlimit(what_, &before_); }
  ScopedLimit(const ScopedLimit&) = delete;
  ScopedLimit& operator=(const ScopedLimit&) = delete;

 private:
  decltype(RLIMIT_DATA) what_;
  rlimit before_{};
};

std::vector<PlannedTensor> PlanModel() {
  std::vector<PlannedTensor> plan = {
      {"model.embed_tokens.weight", DType::kBF16, {kVocabulary, kHidden}},
      {"model.norm.weight", DType::kBF16, {kHidden}}};
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string block = "model.layers." + std::to_string(i) + ".";
    for (const char* name : {"input_layernorm", "post_attention_layernorm"})
      plan.push_back({block + name + ".weight", DType::kBF16, {kHidden}});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      plan.push_back({block + "self_attn." + name + ".weight", DType::kBF16, {kHidden, kHidden}});
    for (const char* name : {"gate_proj", "up_proj"})
      plan.push_back({block + "mlp." + name + ".weight", DType::kBF16, {kInner, kHidden}});
    plan.push_back({block + "mlp.down_proj.weight", DType::kBF16, {kHidden, kInner}});
  }
  return plan;
}

// Random weights from one pool of numbers; the embedding's file is left as a hole behind its first
// rows.
void WriteModel(const fs::path& folder) {
  Rng rng(11);
  std::vector<float> numbers(static_cast<size_t>(kHidden * kInner) + 1000);
  for (float& number : numbers) number = static_cast<float>(rng.Uniform() - 0.5) * 0.1F;
  CheckpointWriter writer = CheckpointWriter::Create(folder, PlanModel()).value();
  size_t shift = 0;
  for (const PlannedTensor& tensor : PlanModel()) {
    if (tensor.name == "model.embed_tokens.weight") {
      ASSERT_OK(writer.Write(tensor.name, Tensor::Zeros(DType::kBF16, tensor.shape)));
      continue;
    }
    const std::span<const float> values = std::span<const float>(numbers).subspan(
        shift++ % 1000, static_cast<size_t>(Elements(tensor.shape)));
    ASSERT_OK(writer.Write(tensor.name, FromFloat(values, tensor.dtype, tensor.shape).value()));
  }
  std::ofstream(writer.unfinished_folder() / "config.json") << R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512,
    "intermediate_size": 1408, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64,
    "num_hidden_layers": 20, "vocab_size": 150000, "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": true, "torch_dtype": "bfloat16"})";
  ASSERT_OK(writer.Finish());
  ASSERT_OK(writer.Commit());
}

TEST(Memory, AModelLargerThanTheLimitGivesTheSameBytes) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer takes more than any limit";
#endif
  const TemporaryFolder folder;
  const std::string model = folder.path() / "model";
  ASSERT_NO_FATAL_FAILURE(WriteModel(model));
  ASSERT_GT(fs::file_size(folder.path() / "model/model.safetensors"), kLimit);
  {
    std::ofstream data(folder.path() / "data.jsonl");
    Rng rng(12);
    for (int row = 0; row < 16; ++row) {
      data << "{\"input_ids\": [1";
      for (int64_t i = 1; i < kTokens / 16; ++i) data << ", " << rng.Below(kVocabulary);
      data << "]}\n";
    }
  }
  const auto quantize = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"quantize",
                                          model,
                                          "-o",
                                          folder.path() / out,
                                          "--scheme",
                                          "W8A8",
                                          "--method",
                                          "rtn",
                                          "--smoothquant",
                                          "0.5",
                                          "--calibration",
                                          folder.path() / "data.jsonl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunOctavo(arguments);
  };
  const Outcome planned = quantize("planned", {"--dry-run", "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const int64_t expected = planned.json().Find("estimate")->Find("memory_bytes")->as_int();
  EXPECT_LT(expected, static_cast<int64_t>(kLimit)) << planned.out;
  // Too little for the hidden states.
  const int64_t memory = expected - kTokens * kHidden * 2;

  {
    const ScopedLimit limit(RLIMIT_DATA, kLimit);
    const Outcome limited = quantize("limited", {"--memory", std::to_string(memory)});
    ASSERT_EQ(limited.exit_code, 0) << limited.err;
    EXPECT_NE(limited.err.find("read from disk"), std::string::npos) << limited.err;
  }
  const Outcome refused = quantize("refused", {"--memory", "20MiB"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--memory is 20 MiB"), std::string::npos) << refused.err;

  ASSERT_EQ(quantize("free", {}).exit_code, 0);
  EXPECT_EQ(ReadFile(folder.path() / "limited/model.safetensors").value(),
            ReadFile(folder.path() / "free/model.safetensors").value());
}

}  // namespace
}  // namespace octavo
