#include "quant/transforms.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "io/checkpoint_writer.h"
#include "quant/transformed_linear.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TestContext;

Result<std::vector<TransformUse>> Parse(const std::string& text) {
  return ParseOnlineTransforms(ParseJson(text, "test").value(), "transform_config");
}

std::string Group(const std::string& keys, const std::string& use) {
  return R"({"config_groups": {"R4": {)" + keys + R"("apply": [{"targets": "Linear", )" + use +
         "}]}}}";
}

TEST(ParseOnlineTransforms, WhatIsFoldedIntoWeightsNeedsNothing) {
  EXPECT_TRUE(Parse("{}").value().empty());
  EXPECT_TRUE(Parse(R"({"config_groups": {}})").value().empty());
  EXPECT_TRUE(Parse(Group(R"("type": "hadamard", "randomize": true, )",
                          R"("location": "weight_input", "inverse": true)"))
                  .value()
                  .empty());
}

TEST(ParseOnlineTransforms, AUseIsRead) {
  const auto uses = Parse(Group(R"("type": "random-hadamard", "head_dim": 64, )",
                                R"("location": "input", "ignore": ["lm_head"])"))
                        .value();
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].Name(), "R4 at input");
  EXPECT_EQ(uses[0].block, 64);
  EXPECT_TRUE(uses[0].Matches({"model.layers.0.mlp.down_proj", "Linear"}).value());
  EXPECT_FALSE(uses[0].Matches({"lm_head", "Linear"}).value());
  EXPECT_FALSE(uses[0].Matches({"model.norm", "RMSNorm"}).value());
}

TEST(ParseOnlineTransforms, WhatIsMalformedOrUnknownIsNamed) {
  const std::string hadamard = R"("type": "hadamard", )";
  const std::string input = R"("location": "input")";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"3", "transform_config is integer"},
      {R"({"groups": {}})", "unknown key \"groups\""},
      {R"({"config_groups": []})", "config_groups is"},
      {R"({"config_groups": {"R4": 3}})", "config_groups.R4 is integer"},
      {R"({"config_groups": {"R4": {"type": "hadamard", "apply": {}}}})", "apply is object"},
      {R"({"config_groups": {"R4": {"type": "hadamard", "apply": [7]}}})", "apply[0] is integer"},
      {Group(R"("type": "fourier", )", input), "\"fourier\" is not supported"},
      {Group("", input), "R4.type: \"\" is not supported"},
      {Group(hadamard, R"("location": "v_cache")"), "\"v_cache\" is not supported"},
      {Group(hadamard, R"("location": 3)"), "location"},
      {Group(hadamard + R"("head_dim": 0, )", input), "head_dim is 0"},
      {Group(hadamard + R"("head_dim": -4, )", input), "head_dim is -4"},
      {Group(hadamard + R"("head_dims": 4, )", input), "unknown key \"head_dims\""},
      {Group(hadamard + R"("randomize": true, )", input), "R4 at input with randomize"},
      {Group(R"("type": "random-matrix", )", input + R"(, "inverse": true)"),
       "inverse of a random-matrix, R4 at input"},
      {Group(hadamard, input + R"(, "ignore": ["re:("])"), "re:("},
  };
  for (const auto& [text, message] : cases) {
    const auto uses = Parse(text);
    ASSERT_FALSE(uses.ok()) << text;
    EXPECT_NE(uses.status().message().find(message), std::string::npos) << uses.status().message();
  }
}

// What the library saves is read and written the same, also what is folded into weights.
TEST(ParseTransforms, WhatIsReadIsWrittenAgain) {
  for (const char* name : {"llama-spin-online", "llama-quip-w4a16"}) {
    const auto path = testing::TestData(std::string("checkpoints/") + name + "/config.json");
    const Value json = ParseJson(ReadFile(path).value(), "config.json").value();
    const Value& config = *json.Find("quantization_config")->Find("transform_config");
    const auto uses = ParseTransforms(config, "transform_config");
    ASSERT_OK(uses);
    const JsonStyle style{.indent = 1, .sort_keys = true};
    EXPECT_EQ(WriteJson(ToValue(*uses), style), WriteJson(config, style));
  }
}

// (x M)_j = sum_i x_i M_ij for each block of x.
std::vector<float> Times(const std::vector<float>& x, const std::vector<float>& m, size_t n) {
  std::vector<float> y(x.size());
  for (size_t begin = 0; begin < x.size(); begin += n) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < n; ++i) y[begin + j] += x[begin + i] * m[i * n + j];
    }
  }
  return y;
}

std::vector<float> Transposed(const std::vector<float>& m, size_t n) {
  std::vector<float> t(m.size());
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) t[j * n + i] = m[i * n + j];
  }
  return t;
}

Tensor Matrix(const std::vector<float>& elements, int64_t n) {
  Tensor matrix(DType::kF32, {n, n});
  std::copy(elements.begin(), elements.end(), matrix.mutable_data<float>().begin());
  return matrix;
}

// No symmetric one: the transpose differs.
const std::vector<float> kPlain = {1, 2, 3, 4, 5, 6, 7, 8, 10};
// Sylvester's of 4 with the second and third row negated.
const std::vector<float> kSigned = {1, 1, 1, 1, -1, 1, -1, 1, -1, -1, 1, 1, 1, -1, -1, 1};
const std::vector<float> kX = {1, -2, 3, 0.5F, 4, -1, 2, 0.25F, -3, 1, 1, 7};

TEST(RowTransform, MultipliesRowsByBlocks) {
  const TestContext context(2);
  for (const bool is_signed : {false, true}) {
    const size_t n = is_signed ? 4 : 3;
    const std::vector<float>& m = is_signed ? kSigned : kPlain;
    for (const bool transpose : {false, true}) {
      const RowTransform transform(Matrix(m, static_cast<int64_t>(n)), 1, transpose);
      EXPECT_EQ(transform.is_fast(), is_signed);
      const std::vector<float> expected = Times(kX, transpose ? Transposed(m, n) : m, n);
      std::vector<float> y(12);
      transform.Apply(kX.data(), 12, 1, 12, y.data(), 12, context.context);
      EXPECT_EQ(y, expected);
      y = kX;
      transform.ApplyInPlace(y.data(), 12, 1, 12, context.context);
      EXPECT_EQ(y, expected);
    }
  }
}

// diag(signs) (core x S), S of `inner` rows; the core is no Hadamard matrix.
std::vector<float> WithCore(size_t size, size_t inner, Rng* rng) {
  const size_t n = size * inner;
  const auto sign = [&] { return rng->Below(2) == 0 ? 1.0F : -1.0F; };
  std::vector<float> core(size * size);
  for (float& element : core) element = sign();
  std::vector<float> m(n * n);
  for (size_t i = 0; i < n; ++i) {
    const float of_row = sign();
    for (size_t j = 0; j < n; ++j) {
      const bool odd = std::popcount(i % inner & j % inner) % 2 == 1;
      m[i * n + j] = of_row * core[i / inner * size + j / inner] * (odd ? -1.0F : 1.0F);
    }
  }
  return m;
}

TEST(RowTransform, ACoreIsAppliedByItself) {
  const TestContext context(2);
  Rng rng(7);
  for (const auto& [size, inner] : {std::pair<size_t, size_t>{3, 2}, {3, 8}, {12, 4}, {5, 32}}) {
    SCOPED_TRACE(size * inner);
    const size_t n = size * inner;
    const std::vector<float> m = WithCore(size, inner, &rng);
    const auto k = static_cast<int64_t>(2 * n);
    std::vector<float> x(4 * n);  // whole numbers, whose sums are exact
    for (float& value : x) value = static_cast<float>(rng.Below(64)) - 32;
    for (const bool transpose : {false, true}) {
      const RowTransform transform(Matrix(m, static_cast<int64_t>(n)), 0.5F, transpose);
      EXPECT_TRUE(transform.is_fast());
      std::vector<float> expected = Times(x, transpose ? Transposed(m, n) : m, n);
      for (float& value : expected) value /= 2;
      std::vector<float> y(x.size());
      transform.Apply(x.data(), k, 2, k, y.data(), k, context.context);
      EXPECT_EQ(y, expected);
      y = x;
      transform.ApplyInPlace(y.data(), k, 2, k, context.context);
      EXPECT_EQ(y, expected);
    }
  }
}

TEST(RowTransform, AMatrixWithoutFactorsStaysOne) {
  Rng rng(8);
  std::vector<float> m = WithCore(3, 4, &rng);
  m[17] = -m[17];
  EXPECT_FALSE(RowTransform(Matrix(m, 12), 1, false).is_fast());
  m[17] = 3;
  EXPECT_FALSE(RowTransform(Matrix(m, 12), 1, false).is_fast());
}

TEST(RowTransform, AnotherMatrixOfAPowerOfTwoIsNotTakenForHadamards) {
  std::vector<float> m = kSigned;
  m[5] = -m[5];
  EXPECT_FALSE(RowTransform(Matrix(m, 4), 1, false).is_fast());
}

// y = (x W) + 1 for a W of twos.
class PlusOne final : public PreparedLinear {
 public:
  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context&) const override {
    rows->source = x;
  }
  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context&) const override {
    for (int64_t row = 0; row < rows.source.m; ++row) {
      for (int64_t i = 0; i < rows.source.k; ++i)
        y[row * stride + i] = 2 * rows.source.data[row * rows.source.stride + i] + 1;
    }
  }
  std::string Describe() const override { return "plus one"; }
  int64_t owned_bytes() const override { return 0; }
};

// The output's transform has the bias before it, as a hook on the module would.
TEST(WithTransforms, InputBeforeOutputBehind) {
  const TestContext context(1);
  const auto signed_transform = std::make_shared<const RowTransform>(Matrix(kSigned, 4), 1, false);
  const auto plain = std::make_shared<const RowTransform>(Matrix(kPlain, 3), 1, false);
  const LinearLayer layer{.name = "layer",
                          .n = 12,
                          .k = 12,
                          .quantization = {},
                          .input_transforms = {signed_transform, plain},
                          .output_transforms = {plain}};
  const auto linear = WithTransforms(std::make_unique<PlusOne>(), {&layer, 1});
  QuantizedRows rows;
  linear->QuantizeRows({kX.data(), 1, 12, 12}, &rows, context.context);
  std::vector<float> y(12);
  linear->Multiply(rows, y.data(), 12, context.context);
  std::vector<float> expected = Times(Times(kX, kSigned, 4), kPlain, 3);
  for (float& value : expected) value = 2 * value + 1;
  EXPECT_EQ(y, Times(expected, kPlain, 3));
  EXPECT_EQ(linear->Describe(),
            "plus one, input times Hadamard blocks of 4, input times matrices of 3, output times "
            "matrices of 3");
}

class TransformMakerTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::vector<double>& elements, Shape shape) {
    Tensor tensor(DType::kF64, std::move(shape));
    std::copy(elements.begin(), elements.end(), tensor.mutable_data<double>().begin());
    tensors_[name] = std::move(tensor);
  }

  Result<std::shared_ptr<const RowTransform>> Make(const std::string& type, int64_t width) {
    const auto uses = Parse(Group("\"type\": \"" + type + "\", ", R"("location": "input")"));
    std::vector<std::pair<std::string, TensorView>> views;
    for (const auto& [name, tensor] : tensors_) views.emplace_back(name, tensor.view());
    EXPECT_TRUE(WriteSafetensors(folder_.path() / "model.safetensors", views).ok());
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / "config.json", "{}").ok());
    const Checkpoint checkpoint = Checkpoint::Open(folder_.path()).value();
    TransformMaker maker(checkpoint, uses.value());
    return maker.Make(uses.value()[0], "layers.1.down_proj", width);
  }

  void ExpectError(const std::string& type, int64_t width, const std::string& message) {
    const auto made = Make(type, width);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.status().message().find(message), std::string::npos) << made.status().message();
  }

  std::map<std::string, Tensor> tensors_;
  testing::TemporaryFolder folder_;
};

const std::vector<double> kOnes = {1, 1, 1, -1};

TEST_F(TransformMakerTest, AMatrixIsStoredOnceASizeOrMade) {
  Add("norm.weight", {1}, {1});
  EXPECT_EQ(Make("hadamard", 8).value()->size(), 8);
  ExpectError("hadamard", 12, "only hadamard of a power of two can be made");
  ExpectError("random-hadamard", 8, "layers.1.down_proj.R4_input.weight is missing");
  Add("layers.0.q_proj.R4_input.weight", kOnes, {2, 2});
  EXPECT_TRUE(Make("random-hadamard", 2).value()->is_fast());
  ExpectError("random-hadamard", 4, "every other matrix [4, 4] of R4");
}

TEST_F(TransformMakerTest, MalformedMatricesAreRefused) {
  Add("layers.1.down_proj.R4_input.weight", kOnes, {4, 1});
  ExpectError("hadamard", 2, "layers.1.down_proj.R4_input.weight: shape [4, 1], expected [2, 2]");
  Add("layers.1.down_proj.R4_input.weight", {1, 1, 1, -0.5}, {2, 2});
  ExpectError("hadamard", 2, "holds -0.5, expected 1 and -1 only");
  EXPECT_TRUE(Make("random-matrix", 2).ok());
  Add("layers.1.down_proj.R4_input.weight", {1, 1, 1, std::nan("")}, {2, 2});
  ExpectError("random-hadamard", 2, "holds nan");
  ExpectError("random-matrix", 2, "holds nan, expected finite numbers");
  tensors_["layers.1.down_proj.R4_input.weight"] = Tensor::Zeros(DType::kI32, {2, 2});
  ExpectError("hadamard", 2, "layers.1.down_proj.R4_input.weight");
}

}  // namespace
}  // namespace octavo
