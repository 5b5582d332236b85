#include "quant/quantize_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "io/safetensors.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(OCTAVO_TEST_DATA) / "schemes";

QuantizationArgs Args(std::string_view json) {
  return ParseQuantizationArgs(ParseJson(json, "test").value(), "args").value();
}

std::vector<int> Codes(const Tensor& codes) {
  const auto data = codes.data<int8_t>();
  return {data.begin(), data.end()};
}

TEST(QuantizeWeight, ReferenceRoundsTheQuotientToBf16) {  // T8
  const QuantizationArgs args = Args(R"({"strategy": "channel"})");
  const std::vector<float> w = {1.0F, -0.3984375F};
  const auto reference = QuantizeToNearest(args, w, 1, 2, DType::kBF16, Arithmetic::kReference);
  const auto ours = QuantizeToNearest(args, w, 1, 2, DType::kBF16);
  EXPECT_EQ(reference->scale.data<float>()[0], 0.00787353515625F);
  EXPECT_EQ(ours->scale.data<float>()[0], 0.00787353515625F);
  EXPECT_EQ(reference->codes.data<int8_t>()[1], -50);
  EXPECT_EQ(ours->codes.data<int8_t>()[1], -51);
}

TEST(QuantizeWeight, TestVectors) {
  for (const Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kReference}) {
    const auto t11 = QuantizeToNearest(Args(R"({"num_bits": 4, "group_size": 4})"),
                                       std::vector<float>{1.875F, -1.875F, 0.375F, -0.125F}, 1, 4,
                                       DType::kBF16, arithmetic);
    EXPECT_EQ(t11->scale.data<float>()[0], 0.25F);
    EXPECT_EQ(Codes(t11->codes), (std::vector<int>{7, -8, 2, 0}));
    const auto t12 =
        QuantizeToNearest(Args(R"({"strategy": "channel"})"),
                          std::vector<float>{0.99609375F, -0.99609375F, 0.01171875F, -0.00390625F},
                          1, 4, DType::kBF16, arithmetic);
    EXPECT_EQ(Codes(t12->codes), (std::vector<int>{127, -128, 2, 0}));
    const auto t13 = QuantizeToNearest(
        Args(R"({"num_bits": 4, "group_size": 4, "symmetric": false})"),
        std::vector<float>{-0.625F, 1.25F, 0.4375F, 0.0F}, 1, 4, DType::kBF16, arithmetic);
    EXPECT_EQ(Codes(t13->codes), (std::vector<int>{-8, 7, 0, -3}));
    EXPECT_EQ(t13->zero_point.data<int8_t>()[0], -3);
    const Tensor values =
        Dequantize(Args(R"({"num_bits": 4, "group_size": 4, "symmetric": false})"), *t13);
    EXPECT_EQ(values.data<float>()[2], 0.375F);
    const auto t14 =
        QuantizeToNearest(Args(R"({"num_bits": 4, "group_size": 2, "symmetric": false})"),
                          std::vector<float>{1.0F, 4.0F}, 1, 2, DType::kF32, arithmetic);
    EXPECT_EQ(Codes(t14->codes), (std::vector<int>{-4, 7}));
    EXPECT_EQ(t14->zero_point.data<int8_t>()[0], -8);
  }
}

// Every integer case of the library: rows of zeros, ties, outliers, subnormals.
TEST(QuantizeWeight, MeetsTheLibraryOnEdgeCases) {
  const auto file = SafetensorsFile::Open(kData / "arith_int.safetensors").value();
  const Value json = ParseJson(ReadFile(kData / "arith_int.json").value(), "arith_int").value();
  int cases = 0;
  for (const auto& [name, entry] : json.Find("quantization")->as_object()) {
    SCOPED_TRACE(name);
    const auto args = ParseQuantizationArgs(*entry.Find("args"), name).value();
    const TensorView input = file.Find(entry.Find("input")->as_string()).value();
    const Tensor w = ToFloatTensor(input).value();
    const DType dtype = input.dtype;
    const auto found = QuantizeToNearest(args, w.data<float>(), input.shape[0], input.shape[1],
                                         dtype, Arithmetic::kReference)
                           .value();
    const auto codes = file.Find(name + ".codes")->data<int8_t>();
    EXPECT_TRUE(std::equal(codes.begin(), codes.end(), found.codes.data<int8_t>().begin()));
    const Tensor scale = ToFloatTensor(*file.Find(name + ".scale")).value();
    EXPECT_EQ(scale.elements(), found.scale.elements());
    for (int64_t i = 0; i < scale.elements(); ++i) {
      const auto unit = static_cast<size_t>(i);
      EXPECT_EQ(scale.data<float>()[unit], found.scale.data<float>()[unit]) << unit;
      if (args.symmetric) continue;
      EXPECT_EQ(file.Find(name + ".zero_point")->data<int8_t>()[unit],
                found.zero_point.data<int8_t>()[unit])
          << unit;
    }
    if (dtype == DType::kF32 && args.symmetric) {  // there both rules are one
      const auto ours =
          QuantizeToNearest(args, w.data<float>(), input.shape[0], input.shape[1], dtype).value();
      EXPECT_EQ(Codes(ours.codes), Codes(found.codes));
    }
    ++cases;
  }
  EXPECT_EQ(cases, 66);
}

// Whole layers as llm-compressor saved them, and what our rule wins over it.
TEST(QuantizeWeight, MeetsSavedCheckpoints) {
  const auto file = SafetensorsFile::Open(kData / "rtn.safetensors").value();
  const QuantizationArgs args = Args(R"({"strategy": "channel"})");
  int layers = 0;
  for (const auto& [name, source] : file.tensors()) {
    if (!name.ends_with(".source")) continue;
    SCOPED_TRACE(name);
    const std::string layer = name.substr(0, name.size() - 7);
    const Tensor w = ToFloatTensor(source).value();
    const int64_t n = source.shape[0];
    const int64_t k = source.shape[1];
    const auto reference =
        QuantizeToNearest(args, w.data<float>(), n, k, DType::kBF16, Arithmetic::kReference)
            .value();
    const auto saved = file.Find(layer + ".weight")->data<int8_t>();
    EXPECT_TRUE(std::equal(saved.begin(), saved.end(), reference.codes.data<int8_t>().begin()));
    const Tensor scale = ToFloatTensor(*file.Find(layer + ".weight_scale")).value();
    EXPECT_EQ(scale.shape(), reference.scale.shape());
    const auto ours = QuantizeToNearest(args, w.data<float>(), n, k, DType::kBF16).value();
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      EXPECT_EQ(scale.data<float>()[i], reference.scale.data<float>()[i]);
      EXPECT_EQ(scale.data<float>()[i], ours.scale.data<float>()[i]);
    }
    const Tensor reference_values = Dequantize(args, reference);
    const Tensor our_values = Dequantize(args, ours);
    double reference_error = 0;
    double our_error = 0;
    for (size_t i = 0; i < w.data<float>().size(); ++i) {
      const double value = static_cast<double>(w.data<float>()[i]);
      reference_error +=
          std::pow(static_cast<double>(reference_values.data<float>()[i]) - value, 2);
      our_error += std::pow(static_cast<double>(our_values.data<float>()[i]) - value, 2);
    }
    EXPECT_GT(reference_error / our_error, 1.10);
    ++layers;
  }
  EXPECT_EQ(layers, 3);
}

TEST(QuantizeWeight, AllZeroUnitsDecodeToZero) {
  for (const char* json :
       {R"({"strategy": "channel"})", R"({"strategy": "channel", "symmetric": false})"}) {
    for (const auto& [dtype, epsilon] :
         {std::pair{DType::kBF16, 0x1p-7F}, std::pair{DType::kF16, 0x1p-10F},
          std::pair{DType::kF32, 0x1p-23F}}) {
      const auto result =
          QuantizeToNearest(Args(json), std::vector<float>(4, 0.0F), 1, 4, dtype).value();
      EXPECT_EQ(result.scale.data<float>()[0], epsilon);
      EXPECT_EQ(Codes(result.codes), std::vector<int>(4, 0));
    }
  }
}

TEST(QuantizeWeight, RefusesWhatIsNotFinite) {
  const QuantizationArgs args = Args(R"({"strategy": "channel"})");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    std::vector<float> w(40, 1.0F);
    w[37] = bad;
    const auto result = QuantizeToNearest(args, w, 2, 20, DType::kBF16);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  }
  // Finite values whose scale float16 cannot hold.
  EXPECT_FALSE(QuantizeToNearest(args, std::vector<float>{1e30F}, 1, 1, DType::kF16).ok());
}

TEST(QuantizeWeight, NamesWhatItCannotDo) {
  const std::vector<float> w(2 * 24, 1.0F);
  const auto grouped = QuantizeToNearest(Args(R"({"group_size": 16})"), w, 2, 24, DType::kBF16);
  ASSERT_FALSE(grouped.ok());
  EXPECT_NE(grouped.status().message().find("use a group size of 12"), std::string::npos)
      << grouped.status().message();
  const auto tokens =
      QuantizeToNearest(Args(R"({"strategy": "token", "dynamic": true})"), w, 2, 24, DType::kBF16);
  EXPECT_EQ(tokens.status().code(), StatusCode::kUnsupported);
  const auto unknown =
      QuantizeToNearest(Args(R"({"observer": "minmacks"})"), w, 2, 24, DType::kBF16);
  EXPECT_EQ(unknown.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace octavo
