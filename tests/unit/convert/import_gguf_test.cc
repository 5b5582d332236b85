#include "convert/import_gguf.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "convert/gguf_llama.h"
#include "io/checkpoint.h"
#include "support/golden_files.h"
#include "tensor/convert.h"
#include "unit/io/gguf_builder.h"
#include "unit/io/write_file.h"

namespace octavo {
namespace {

using testing::GgufBuilder;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kF16 = 1;
constexpr uint32_t kQ4_1 = 3;
constexpr uint32_t kQ4_K = 12;

constexpr uint64_t kHidden = 32;
constexpr uint64_t kVocab = 4;

// Rows of F32 whose elements all are the row's number plus `base`.
std::string Rows(uint64_t rows, uint64_t columns, float base) {
  testing::ByteString bytes;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t i = 0; i < columns; ++i) bytes.Number(base + static_cast<float>(row));
  }
  return bytes.bytes();
}

struct TestTensor {
  std::vector<uint64_t> dims;  // innermost first
  uint32_t type = kF32;
  std::string bytes;
};

// A llama of one layer: 4 heads of 8, 2 key-value heads. Tests change it before it is written.
struct TinyModel {
  TinyModel() {
    const auto matrix = [&](const char* name, uint64_t rows, uint64_t columns, float base) {
      tensors[name] = {{columns, rows}, kF32, Rows(rows, columns, base)};
    };
    matrix("token_embd.weight", kVocab, kHidden, 0);
    matrix("blk.0.attn_q.weight", 32, kHidden, 100);
    matrix("blk.0.attn_k.weight", 16, kHidden, 200);
    matrix("blk.0.attn_v.weight", 16, kHidden, 300);
    matrix("blk.0.attn_output.weight", kHidden, 32, 400);
    matrix("blk.0.ffn_gate.weight", 64, kHidden, 500);
    matrix("blk.0.ffn_up.weight", 64, kHidden, 600);
    matrix("blk.0.ffn_down.weight", kHidden, 64, 700);
    for (const char* name :
         {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"}) {
      tensors[name] = {{kHidden}, kF32, Rows(1, kHidden, 1)};
    }
  }

  std::string Build() const {
    GgufBuilder builder;
    builder.Text("general.architecture", architecture);
    for (const auto& [key, value] : sizes) builder.U32(key, value);
    builder.F32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    builder.F32("llama.rope.freq_base", 10000.0F);
    if (!rope_scaling.empty()) {
      builder.Text("llama.rope.scaling.type", rope_scaling);
      builder.F32("llama.rope.scaling.factor", 2.5F);
    }
    builder.Text("tokenizer.ggml.model", "gpt2").Text("tokenizer.ggml.pre", "smollm");
    builder.Texts("tokenizer.ggml.tokens", {"<end>", "a", "b", "ab"});
    builder.I32s("tokenizer.ggml.token_type", {3, 1, 1, 1});
    builder.Texts("tokenizer.ggml.merges", {"a b"});
    for (const auto& [name, tensor] : tensors) {
      builder.Tensor(name, tensor.dims, tensor.type, tensor.bytes);
    }
    return builder.Build();
  }

  std::string architecture = "llama";
  std::string rope_scaling;
  std::map<std::string, uint32_t> sizes = {
      {"llama.block_count", 1},
      {"llama.context_length", 64},
      {"llama.embedding_length", kHidden},
      {"llama.feed_forward_length", 64},
      {"llama.attention.head_count", 4},
      {"llama.attention.head_count_kv", 2},
      {"llama.rope.dimension_count", 8},
      {"tokenizer.ggml.eos_token_id", 0},
  };
  std::map<std::string, TestTensor> tensors;
};

class ImportGgufTest : public ::testing::Test {
 protected:
  Status Import(const TinyModel& model, const ImportOptions& options = {}) {
    testing::WriteFile(gguf_, model.Build());
    return ImportGguf(gguf_, out_, options, context_.context);
  }

  // The first element of each row of an imported tensor.
  std::vector<float> FirstColumn(const std::string& name) {
    const Checkpoint checkpoint = Checkpoint::Open(out_).value();
    const Tensor tensor = ToFloatTensor(checkpoint.Find(name).value()).value();
    std::vector<float> column;
    for (int64_t row = 0; row < tensor.dim(0); ++row) {
      column.push_back(tensor.data<float>()[static_cast<size_t>(row * tensor.dim(1))]);
    }
    return column;
  }

  testing::TestContext context_;
  testing::TemporaryFolder folder_;
  std::filesystem::path gguf_ = folder_.path() / "tiny.gguf";
  std::filesystem::path out_ = folder_.path() / "out";
};

TEST_F(ImportGgufTest, WritesAWholeFolder) {
  ASSERT_OK(Import(TinyModel()));
  Result<Checkpoint> checkpoint = Checkpoint::Open(out_);
  ASSERT_OK(checkpoint);
  EXPECT_EQ(checkpoint->Names(), (std::vector<std::string>{
                                     "model.embed_tokens.weight",
                                     "model.layers.0.input_layernorm.weight",
                                     "model.layers.0.mlp.down_proj.weight",
                                     "model.layers.0.mlp.gate_proj.weight",
                                     "model.layers.0.mlp.up_proj.weight",
                                     "model.layers.0.post_attention_layernorm.weight",
                                     "model.layers.0.self_attn.k_proj.weight",
                                     "model.layers.0.self_attn.o_proj.weight",
                                     "model.layers.0.self_attn.q_proj.weight",
                                     "model.layers.0.self_attn.v_proj.weight",
                                     "model.norm.weight",
                                 }));
  for (const std::string& name : checkpoint->Names()) {
    EXPECT_EQ(checkpoint->Find(name).value().dtype, DType::kBF16) << name;
  }
  EXPECT_EQ(checkpoint->Find("model.layers.0.mlp.down_proj.weight").value().shape, (Shape{32, 64}));
  EXPECT_EQ(ReadFile(out_ / "config.json").value(), R"({
  "architectures": [
    "LlamaForCausalLM"
  ],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "eos_token_id": 0,
  "hidden_act": "silu",
  "hidden_size": 32,
  "initializer_range": 0.17677669529663687,
  "intermediate_size": 64,
  "max_position_embeddings": 64,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 4,
  "num_hidden_layers": 1,
  "num_key_value_heads": 2,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "rope_theta": 10000.0,
  "tie_word_embeddings": true,
  "torch_dtype": "bfloat16",
  "use_cache": true,
  "vocab_size": 4
}
)");
  EXPECT_EQ(ReadFile(out_ / "generation_config.json").value(), "{\n  \"eos_token_id\": 0\n}\n");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    EXPECT_TRUE(ParseJson(ReadFile(out_ / name).value(), name).ok());
  }
}

TEST_F(ImportGgufTest, PutsRotaryRowsHalfAHeadApart) {
  ASSERT_OK(Import(TinyModel()));
  std::vector<float> q, k, v;
  for (int head = 0; head < 4; ++head) {
    for (const int row : {0, 2, 4, 6, 1, 3, 5, 7}) {
      q.push_back(static_cast<float>(100 + 8 * head + row));
      if (head < 2) k.push_back(static_cast<float>(200 + 8 * head + row));
    }
  }
  // BF16 holds every second integer from 256 to 512.
  for (int row = 0; row < 16; ++row) v.push_back(RoundToBf16(static_cast<float>(300 + row)));
  for (float& value : k) value = RoundToBf16(value);
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.q_proj.weight"), q);
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.k_proj.weight"), k);
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.v_proj.weight"), v);
}

TEST_F(ImportGgufTest, DecodesBlocks) {
  TinyModel model;
  testing::ByteString blocks;
  for (uint64_t row = 0; row < kVocab; ++row) {
    // d = 0.5, m = -1; every code 2 * row, then 2 * row + 1.
    blocks.Number(uint16_t{0x3800}).Number(uint16_t{0xBC00});
    blocks.Raw(std::string(16, static_cast<char>(row * 2 | (row * 2 + 1) << 4)));
  }
  model.tensors["token_embd.weight"] = {{kHidden, kVocab}, kQ4_1, blocks.bytes()};
  model.tensors["blk.0.attn_norm.weight"] = {{kHidden}, kF16, std::string(64, '\x3C')};
  ASSERT_OK(Import(model));
  EXPECT_EQ(FirstColumn("model.embed_tokens.weight"), (std::vector<float>{-1, 0, 1, 2}));
  const Checkpoint checkpoint = Checkpoint::Open(out_).value();
  const TensorView embedding = checkpoint.Find("model.embed_tokens.weight").value();
  EXPECT_EQ(FloatFromBf16(embedding.data<uint16_t>()[31]), -0.5F);
  const TensorView norm = checkpoint.Find("model.layers.0.input_layernorm.weight").value();
  EXPECT_EQ(FloatFromBf16(norm.data<uint16_t>()[0]), RoundToBf16(FloatFromF16(0x3C3C)));
}

TEST_F(ImportGgufTest, AnOutputMatrixMeansUntiedEmbeddings) {
  TinyModel model;
  model.tensors["output.weight"] = {{kHidden, kVocab}, kF32, Rows(kVocab, kHidden, 8)};
  ASSERT_OK(Import(model));
  EXPECT_EQ(FirstColumn("lm_head.weight"), (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(*Checkpoint::Open(out_)->config().Find("tie_word_embeddings"), Value(false));
}

TEST_F(ImportGgufTest, LinearRotaryScalingIsKept) {
  TinyModel model;
  model.rope_scaling = "linear";
  ASSERT_OK(Import(model));
  EXPECT_EQ(*Checkpoint::Open(out_)->config().Find("rope_scaling"),
            Value(Value::Object{{"type", "linear"}, {"factor", 2.5}}));
}

TEST_F(ImportGgufTest, AHeadSizeOfItsOwnIsWritten) {
  TinyModel model;
  model.sizes["llama.attention.key_length"] = 4;
  model.sizes["llama.attention.value_length"] = 4;
  model.sizes["llama.rope.dimension_count"] = 4;
  for (const auto& [name, rows] : {std::pair("q", 16), std::pair("k", 8), std::pair("v", 8)}) {
    const auto count = static_cast<uint64_t>(rows);
    model.tensors["blk.0.attn_" + std::string(name) + ".weight"] = {
        {kHidden, count}, kF32, Rows(count, kHidden, 0)};
  }
  model.tensors["blk.0.attn_output.weight"] = {{16, kHidden}, kF32, Rows(kHidden, 16, 0)};
  ASSERT_OK(Import(model));
  EXPECT_EQ(*Checkpoint::Open(out_)->config().Find("head_dim"), Value(4));
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.k_proj.weight"),
            (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
}

TEST_F(ImportGgufTest, ShardsAndForce) {
  ASSERT_OK(Import(TinyModel(), {.max_shard_bytes = 5000}));
  EXPECT_GT(Checkpoint::Open(out_)->files().size(), 2U);
  EXPECT_EQ(Import(TinyModel()).code(), StatusCode::kAlreadyExists);
  ASSERT_OK(Import(TinyModel(), {.force = true}));
  EXPECT_EQ(Checkpoint::Open(out_)->files().size(), 1U);
}

TEST_F(ImportGgufTest, ThreadsDoNotChangeTheBytes) {
  ASSERT_OK(Import(TinyModel()));
  const std::string two = ReadFile(out_ / "model.safetensors").value();
  testing::TestContext one(1);
  ASSERT_OK(ImportGguf(gguf_, folder_.path() / "one", {}, one.context));
  EXPECT_EQ(ReadFile(folder_.path() / "one" / "model.safetensors").value(), two);
}

TEST_F(ImportGgufTest, CancellationLeavesNothing) {
  testing::WriteFile(gguf_, TinyModel().Build());
  const std::atomic<bool> cancelled = true;
  const Context context{.pool = context_.pool, .cancelled = &cancelled};
  EXPECT_EQ(ImportGguf(gguf_, out_, {}, context).code(), StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_FALSE(std::filesystem::exists(out_.string() + ".unfinished"));
}

TEST_F(ImportGgufTest, WhatCannotBeImportedIsNamed) {
  struct Refused {
    const char* message;
    std::function<void(TinyModel&)> change;
  };
  const std::vector<Refused> cases = {
      {"architecture qwen2", [](TinyModel& m) { m.architecture = "qwen2"; }},
      {"tensor blk.0.ffn_up.weight is missing",
       [](TinyModel& m) { m.tensors.erase("blk.0.ffn_up.weight"); }},
      {"tensor token_embd.weight is missing",
       [](TinyModel& m) { m.tensors.erase("token_embd.weight"); }},
      {"tensor rope_freqs.weight has no place",
       [](TinyModel& m) {
         m.tensors["rope_freqs.weight"] = {{4}, kF32, Rows(1, 4, 1)};
       }},
      {"tensor blk.1.attn_norm.weight is missing",
       [](TinyModel& m) { m.sizes["llama.block_count"] = 2; }},
      {"tensor blk.0.attn_q.weight: shape [32, 32], expected [16, 32]",
       [](TinyModel& m) {
         m.sizes["llama.attention.key_length"] = 4;
         m.sizes["llama.rope.dimension_count"] = 4;
       }},
      {"tensor token_embd.weight: block type Q4_K",
       [](TinyModel& m) {
         m.sizes["llama.embedding_length"] = 256;
         m.sizes["llama.attention.key_length"] = 8;
         for (auto& [name, tensor] : m.tensors) {
           for (uint64_t& dim : tensor.dims) {
             if (dim == kHidden) dim = 256;
           }
           tensor.bytes.resize(tensor.bytes.size() * 64);
         }
         m.tensors["blk.0.attn_q.weight"].dims = {256, 32};
         m.tensors["blk.0.attn_output.weight"].dims = {32, 256};
         m.tensors["token_embd.weight"] = {{256, kVocab}, kQ4_K, std::string(144 * kVocab, '\0')};
       }},
      {"llama.block_count", [](TinyModel& m) { m.sizes.erase("llama.block_count"); }},
      {"llama.block_count is 0", [](TinyModel& m) { m.sizes["llama.block_count"] = 0; }},
      {"llama.embedding_length is 4294967295",
       [](TinyModel& m) { m.sizes["llama.embedding_length"] = UINT32_MAX; }},
      {"llama.attention.head_count is 0",
       [](TinyModel& m) { m.sizes["llama.attention.head_count"] = 0; }},
      {"4 heads cannot share 3",
       [](TinyModel& m) { m.sizes["llama.attention.head_count_kv"] = 3; }},
      {"llama.rope.dimension_count is 6",
       [](TinyModel& m) { m.sizes["llama.rope.dimension_count"] = 6; }},
      {"llama.rope.scaling.type is yarn", [](TinyModel& m) { m.rope_scaling = "yarn"; }},
      {"8 experts", [](TinyModel& m) { m.sizes["llama.expert_count"] = 8; }},
      {"split model", [](TinyModel& m) { m.sizes["split.count"] = 3; }},
      {"eos_token_id is 4", [](TinyModel& m) { m.sizes["tokenizer.ggml.eos_token_id"] = 4; }},
      {"4 tokens, but the embedding has 2 rows",
       [](TinyModel& m) {
         m.tensors["token_embd.weight"] = {{kHidden, 2}, kF32, Rows(2, kHidden, 0)};
       }},
  };
  for (const Refused& refused : cases) {
    TinyModel model;
    refused.change(model);
    const Status status = Import(model);
    ASSERT_FALSE(status.ok()) << refused.message;
    EXPECT_NE(status.message().find("tiny.gguf"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(refused.message), std::string::npos) << status.message();
    EXPECT_FALSE(std::filesystem::exists(out_)) << refused.message;
    EXPECT_FALSE(std::filesystem::exists(out_.string() + ".unfinished")) << refused.message;
  }
}

}  // namespace
}  // namespace octavo
