#include "convert/import_gguf.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>

#include "base/file.h"
#include "base/json.h"
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
constexpr uint32_t kQ8_1 = 9;

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

TestTensor HalfPrecision(const TestTensor& full) {
  testing::ByteString bytes;
  for (size_t at = 0; at < full.bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, full.bytes.data() + at, sizeof(float));
    bytes.Number(F16FromFloat(value));
  }
  return {full.dims, kF16, bytes.bytes()};
}

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

  void AddVector(const std::string& name, uint64_t size, float value) {
    tensors[name] = {{size}, kF32, Rows(1, size, value)};
  }

  // On q, k, v and o: 0, 1, 2 ...
  void AddBiases() {
    for (const auto& [name, size] : {std::pair("q", 32), {"k", 16}, {"v", 16}, {"output", 32}}) {
      const auto count = static_cast<uint64_t>(size);
      tensors["blk.0.attn_" + std::string(name) + ".bias"] = {{count}, kF32, Rows(count, 1, 0)};
    }
  }

  // Another architecture of the same sizes.
  void Rename(const std::string& name) {
    architecture = name;
    std::map<std::string, uint32_t> renamed;
    for (const auto& [key, value] : sizes) {
      renamed[key.starts_with("llama.") ? name + key.substr(5) : key] = value;
    }
    sizes = renamed;
  }

  std::string Build() const {
    GgufBuilder builder;
    builder.Text("general.architecture", architecture);
    for (const auto& [key, value] : sizes) builder.U32(key, value);
    builder.F32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
    builder.F32(architecture + ".rope.freq_base", rope_theta);
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
  float rope_theta = 10'000;
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
  // The elements of an imported vector.
  std::vector<float> Elements(const std::string& name) {
    const Checkpoint checkpoint = Checkpoint::Open(out_).value();
    const Tensor tensor = ToFloatTensor(checkpoint.Find(name).value()).value();
    const auto data = tensor.data<float>();
    return {data.begin(), data.end()};
  }

  Status Import(const TinyModel& model, const ImportOptions& options = {.dtype = DType::kBF16}) {
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
            Value(Value::Object{{"factor", 2.5}, {"rope_type", "linear"}}));
}

TEST_F(ImportGgufTest, YarnKeepsItsOriginalContext) {
  TinyModel model;
  model.rope_scaling = "yarn";
  model.sizes["llama.rope.scaling.original_context_length"] = 16;
  ASSERT_OK(Import(model));
  EXPECT_EQ(*Checkpoint::Open(out_)->config().Find("rope_scaling"),
            Value(Value::Object{
                {"factor", 2.5}, {"original_max_position_embeddings", 16}, {"rope_type", "yarn"}}));
}

// The divisors of a head of 8 and base 10000, by transformers' rule: waves of 6, 63, 628 and 6283
// positions in a context of 8192.
TEST_F(ImportGgufTest, DivisorsOfLlama3BecomeItsParameters) {
  testing::ByteString divisors;
  for (const float divisor : {1.0F, 1.0F, 1.0F, 4.6815F}) divisors.Number(divisor);
  TinyModel model;
  model.tensors["rope_freqs.weight"] = {{4}, kF32, divisors.bytes()};
  // The longest wave is between the limits, so the factor itself is not among the divisors.
  EXPECT_EQ(Import(model).code(), StatusCode::kUnsupported);
  model.rope_theta = 500'000;
  divisors = {};
  for (const float divisor : {1.0F, 1.0F, 2.6946F, 8.0F}) divisors.Number(divisor);
  model.tensors["rope_freqs.weight"].bytes = divisors.bytes();
  ASSERT_OK(Import(model));
  EXPECT_EQ(*Checkpoint::Open(out_)->config().Find("rope_scaling"),
            Value(Value::Object{{"factor", 8.0},
                                {"high_freq_factor", 4.0},
                                {"low_freq_factor", 1.0},
                                {"original_max_position_embeddings", 8192},
                                {"rope_type", "llama3"}}));
}

TEST_F(ImportGgufTest, BiasesOfLlamaFollowTheirRows) {
  TinyModel model;
  model.AddBiases();
  ASSERT_OK(Import(model));
  const Checkpoint checkpoint = Checkpoint::Open(out_).value();
  EXPECT_EQ(*checkpoint.config().Find("attention_bias"), Value(true));
  EXPECT_EQ(*checkpoint.config().Find("mlp_bias"), Value(false));
  EXPECT_EQ(Elements("model.layers.0.self_attn.k_proj.bias"),
            (std::vector<float>{0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}));
  EXPECT_EQ(Elements("model.layers.0.self_attn.v_proj.bias")[1], 1);
}

TEST_F(ImportGgufTest, Qwen2KeepsItsRowsAndHasBiases) {
  TinyModel model;
  model.Rename("qwen2");
  model.AddBiases();
  model.tensors.erase("blk.0.attn_output.bias");
  ASSERT_OK(Import(model));
  const Checkpoint checkpoint = Checkpoint::Open(out_).value();
  const Value& config = checkpoint.config();
  EXPECT_EQ(*config.Find("architectures"), Value(Value::Array{"Qwen2ForCausalLM"}));
  EXPECT_EQ(*config.Find("model_type"), Value("qwen2"));
  EXPECT_EQ(*config.Find("use_sliding_window"), Value(false));
  EXPECT_EQ(config.Find("attention_bias"), nullptr);
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.q_proj.weight")[1], 101);
  EXPECT_EQ(Elements("model.layers.0.self_attn.k_proj.bias")[1], 1);
}

TEST_F(ImportGgufTest, AWindowMakesALlamaAMistral) {
  TinyModel model;
  model.sizes["llama.attention.sliding_window"] = 8;
  ASSERT_OK(Import(model));
  const Checkpoint checkpoint = Checkpoint::Open(out_).value();
  EXPECT_EQ(*checkpoint.config().Find("architectures"), Value(Value::Array{"MistralForCausalLM"}));
  EXPECT_EQ(*checkpoint.config().Find("sliding_window"), Value(8));
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.q_proj.weight")[1], 102);
}

TEST_F(ImportGgufTest, Qwen3HasNormsOfHeads) {
  TinyModel model;
  model.Rename("qwen3");
  EXPECT_EQ(Import(model).code(), StatusCode::kNotFound);
  model.AddVector("blk.0.attn_q_norm.weight", 8, 3);
  model.AddVector("blk.0.attn_k_norm.weight", 8, 4);
  model.AddVector("blk.0.ffn_up.bias", 64, 1);
  EXPECT_EQ(Import(model).code(), StatusCode::kUnsupported);
  model.tensors.erase("blk.0.ffn_up.bias");
  ASSERT_OK(Import(model));
  const Checkpoint checkpoint = Checkpoint::Open(out_).value();
  EXPECT_EQ(*checkpoint.config().Find("architectures"), Value(Value::Array{"Qwen3ForCausalLM"}));
  EXPECT_EQ(*checkpoint.config().Find("head_dim"), Value(8));
  EXPECT_EQ(*checkpoint.config().Find("attention_bias"), Value(false));
  EXPECT_EQ(Elements("model.layers.0.self_attn.k_norm.weight")[0], 4);
  EXPECT_EQ(FirstColumn("model.layers.0.self_attn.q_proj.weight")[1], 101);
}

TEST_F(ImportGgufTest, MatricesDecideTheDType) {
  const auto dtype = [&] { return Checkpoint::Open(out_)->Find("model.norm.weight")->dtype; };
  TinyModel model;
  for (auto& [name, tensor] : model.tensors) {
    if (tensor.dims.size() == 2) tensor = HalfPrecision(tensor);
  }
  ASSERT_OK(Import(model, {}));
  EXPECT_EQ(dtype(), DType::kF16);
  EXPECT_EQ(*Checkpoint::Open(out_)->config().Find("torch_dtype"), Value("float16"));
  EXPECT_EQ(FirstColumn("model.layers.0.mlp.down_proj.weight")[31], 731);
  ASSERT_OK(Import(model, {.force = true, .dtype = DType::kF32}));
  EXPECT_EQ(dtype(), DType::kF32);
  TinyModel large;
  large.tensors["token_embd.weight"].bytes = Rows(kVocab, kHidden, 1e5F);
  const Status status = Import(large, {.force = true, .dtype = DType::kF16});
  EXPECT_NE(status.message().find("tensor token_embd.weight has numbers that float16 cannot hold"),
            std::string::npos)
      << status.message();
  model.tensors["token_embd.weight"] = TinyModel().tensors["token_embd.weight"];  // mixed
  ASSERT_OK(Import(model, {.force = true}));
  EXPECT_EQ(dtype(), DType::kBF16);
  ASSERT_OK(Import(TinyModel(), {.force = true}));
  EXPECT_EQ(dtype(), DType::kF32);
}

TEST_F(ImportGgufTest, TheEndOfATurnEndsGeneration) {
  TinyModel model;
  model.sizes["tokenizer.ggml.eot_token_id"] = 1;
  ASSERT_OK(Import(model));
  EXPECT_EQ(ReadFile(out_ / "generation_config.json").value(),
            "{\n  \"eos_token_id\": [\n    0,\n    1\n  ]\n}\n");
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
  ASSERT_OK(ImportGguf(gguf_, folder_.path() / "one", {.dtype = DType::kBF16}, one.context));
  EXPECT_TRUE(ReadFile(folder_.path() / "one" / "model.safetensors").value() == two);
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
      {"architecture falcon without a sliding window, only llama, llama with one, qwen2, qwen3 are",
       [](TinyModel& m) { m.architecture = "falcon"; }},
      {"architecture qwen2 with a sliding window",
       [](TinyModel& m) {
         m.Rename("qwen2");
         m.sizes["qwen2.attention.sliding_window"] = 8;
       }},
      {"tensor blk.0.ffn_up.weight is missing",
       [](TinyModel& m) { m.tensors.erase("blk.0.ffn_up.weight"); }},
      {"tensor token_embd.weight is missing",
       [](TinyModel& m) { m.tensors.erase("token_embd.weight"); }},
      {"tensor rope_factors_long.weight has no place in a llama model",
       [](TinyModel& m) {
         m.tensors["rope_factors_long.weight"] = {{4}, kF32, Rows(1, 4, 1)};
       }},
      {"tensor rope_freqs.weight: shape [2], expected [4]",
       [](TinyModel& m) {
         m.tensors["rope_freqs.weight"] = {{2}, kF32, Rows(1, 2, 1)};
       }},
      {"tensor rope_freqs.weight: element 0 is 5, but rotary scaling as in Llama 3",
       [](TinyModel& m) {
         m.tensors["rope_freqs.weight"] = {{4}, kF32, Rows(1, 4, 5)};
       }},
      {"tensor rope_freqs.weight beside llama.rope.scaling.type linear",
       [](TinyModel& m) {
         m.rope_scaling = "linear";
         m.tensors["rope_freqs.weight"] = {{4}, kF32, Rows(1, 4, 1)};
       }},
      {"tensor blk.0.attn_k.bias is missing",
       [](TinyModel& m) { m.AddVector("blk.0.attn_q.bias", 32, 1); }},
      {"a bias of block type Q4_1",
       [](TinyModel& m) {
         m.AddBiases();
         m.tensors["blk.0.attn_q.bias"] = {{32}, kQ4_1, std::string(20, '\0')};
       }},
      {"tensor blk.1.attn_norm.weight is missing",
       [](TinyModel& m) { m.sizes["llama.block_count"] = 2; }},
      {"tensor blk.0.attn_q.weight: shape [32, 32], expected [16, 32]",
       [](TinyModel& m) {
         m.sizes["llama.attention.key_length"] = 4;
         m.sizes["llama.rope.dimension_count"] = 4;
       }},
      {"tensor token_embd.weight: block type Q8_1",
       [](TinyModel& m) {
         m.tensors["token_embd.weight"] = {
             {kHidden, kVocab}, kQ8_1, std::string(36 * kVocab, '\0')};
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
      {"llama.rope.scaling.type is longrope", [](TinyModel& m) { m.rope_scaling = "longrope"; }},
      {"llama.rope.scaling.original_context_length", [](TinyModel& m) { m.rope_scaling = "yarn"; }},
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
