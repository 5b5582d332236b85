// The library's arithmetic on small tensors full of edge cases: FP8, FP4 and MX, of weights and of
// inputs.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "io/safetensors.h"
#include "kernels/round_rows/round_rows.h"
#include "quant/quantize_weight.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {
namespace {

const std::filesystem::path kData = std::filesystem::path(OCTAVO_TEST_DATA) / "schemes";

class ArithFloat : public ::testing::Test {
 protected:
  TensorView Find(const std::string& name) const { return file_.Find(name).value(); }

  // Any of the file's tensors as float32.
  std::vector<float> Floats(const std::string& name) const {
    const TensorView view = Find(name);
    std::vector<float> values(static_cast<size_t>(view.elements()));
    if (view.dtype == DType::kF8E4M3) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(view.bytes);
      std::transform(bytes, bytes + values.size(), values.begin(), FloatFromE4M3);
    } else {
      EXPECT_TRUE(ToFloat(view, values).ok());
    }
    return values;
  }

  SafetensorsFile file_ = SafetensorsFile::Open(kData / "arith_float.safetensors").value();
  Value json_ = ParseJson(ReadFile(kData / "arith_float.json").value(), "arith_float").value();
};

TEST_F(ArithFloat, CastsAreTheLibrarys) {
  for (const std::string from : {"", "from_bf16_"}) {
    const std::vector<float> input = Floats("cast.fp8." + from + "input");
    const TensorView output = Find("cast.fp8." + from + "output");
    for (size_t i = 0; i < input.size(); ++i) {
      const auto expected = static_cast<uint8_t>(output.bytes[i]);
      EXPECT_EQ(E4M3FromFloat(input[i]), expected) << input[i];
      if ((expected & 0x7FU) == 0x7FU) continue;
      const float clamped = std::min(std::max(input[i], -kMaxE4M3), kMaxE4M3);
      EXPECT_EQ(RoundToE4M3(clamped), FloatFromE4M3(expected)) << input[i];
    }
  }
  const std::vector<float> input = Floats("cast.fp4.input");
  const std::vector<float> output = Floats("cast.fp4.output");
  for (size_t i = 0; i < input.size(); ++i) {
    EXPECT_EQ(kE2M1Values[E2M1FromFloat(input[i])], output[i]) << input[i];
    const float clamped = std::min(std::max(input[i], -kMaxE2M1), kMaxE2M1);
    EXPECT_EQ(RoundToE2M1(clamped), output[i]) << input[i];
  }
}

TEST_F(ArithFloat, ScalesOfMxGroupsAreTheLibrarys) {
  const std::vector<float> amax = Floats("amax.f32");
  for (const auto& [format, binades] : {std::pair("fp4", 2), std::pair("fp8", 8)}) {
    const TensorView stored = Find(std::string("e8m0.") + format + ".f32.stored");
    for (size_t i = 0; i < amax.size(); ++i) {
      // The library's bits overflow to infinity there, and its scale to 1.
      if (amax[i] >= 0x1.cp127F) continue;
      EXPECT_EQ(MxScale(amax[i], binades), FloatFromE8M0(static_cast<uint8_t>(stored.bytes[i])))
          << format << " " << amax[i];
    }
  }
  for (const auto& [suffix, dtype] :
       {std::pair("f32", DType::kF32), std::pair("bf16", DType::kBF16)}) {
    const std::vector<float> values = Floats(std::string("amax.") + suffix);
    const std::vector<float> expected = Floats(std::string("nvfp4_global_scale.") + suffix);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(GlobalScale(values[i], dtype), expected[i]) << suffix << " " << values[i];
  }
}

TEST_F(ArithFloat, WeightsAreTheLibrarys) {
  int cases = 0;
  for (const auto& [name, entry] : json_.Find("quantization")->as_object()) {
    if (*entry.Find("args")->Find("dynamic") != Value(false) ||
        *entry.Find("args")->Find("strategy") == Value("token"))
      continue;
    SCOPED_TRACE(name);
    const auto args = ParseQuantizationArgs(*entry.Find("args"), name).value();
    const TensorView input = Find(entry.Find("input")->as_string());
    const Tensor w = ToFloatTensor(input).value();
    const auto found = QuantizeToNearest(args, w.data<float>(), input.shape[0], input.shape[1],
                                         input.dtype, Arithmetic::kReference);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    const std::vector<float> codes = Floats(name + ".codes");
    const auto* bytes = reinterpret_cast<const uint8_t*>(found->codes.view().bytes);
    for (size_t i = 0; i < codes.size(); ++i) {
      const float value = args.num_bits == 8 ? FloatFromE4M3(bytes[i]) : kE2M1Values[bytes[i]];
      EXPECT_EQ(value, codes[i]) << i;
    }
    const std::vector<float> scales = Floats(name + ".scale");
    ASSERT_EQ(found->scale.elements(), std::ssize(scales));
    for (size_t i = 0; i < scales.size(); ++i)
      EXPECT_EQ(found->scale.data<float>()[i], scales[i]) << "scale " << i;
    if (HasGlobalScale(args)) {
      EXPECT_EQ(found->global_scale.data<float>()[0], Floats(name + ".global_scale")[0]);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 16);
}

TEST_F(ArithFloat, RoundedInputsAreTheLibrarys) {
  ThreadPool pool(1);
  const struct {
    const char* name;
    RowRounding rounding;
  } cases[] = {
      {"fp8_token.f32", {.to = RoundTo::kE4M3, .scale_from = RowScale::kLargest}},
      {"fp8_group128_dynamic.f32",
       {.to = RoundTo::kE4M3, .scale_from = RowScale::kLargest, .group = 128}},
      {"mxfp4_dynamic.f32",
       {.to = RoundTo::kE2M1, .scale_from = RowScale::kPowerOfTwo, .group = 32}},
      {"mxfp8_dynamic.f32",
       {.to = RoundTo::kE4M3, .scale_from = RowScale::kPowerOfTwo, .group = 32}},
      {"nvfp4_local.f32",
       {.to = RoundTo::kE2M1, .scale_from = RowScale::kE4M3OfGlobal, .group = 16}},
  };
  for (auto [name, rounding] : cases) {
    SCOPED_TRACE(name);
    const Value* entry = json_.Find("quantization")->Find(name);
    ASSERT_NE(entry, nullptr);
    const TensorView input = Find(entry->Find("input")->as_string());
    if (rounding.scale_from == RowScale::kE4M3OfGlobal)
      rounding.global = Floats(std::string(name) + ".global_scale")[0];
    const int64_t m = input.shape[0];
    const int64_t k = input.shape[1];
    std::vector<float> values(static_cast<size_t>(m * k));
    std::vector<float> scales(static_cast<size_t>(m * rounding.groups(k)));
    RoundRows(input.data<float>().data(), k, m, k, rounding, values.data(), scales.data(),
              SelectIsa().value(), pool);
    const std::vector<float> expected = Floats(std::string(name) + ".dequantized");
    const std::vector<float> expected_scales = Floats(std::string(name) + ".scale");
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], expected[i]) << i;
    // A row of zeros has the library's smallest scale, and ours none: nothing is divided by it.
    for (size_t i = 0; i < scales.size(); ++i) {
      if (scales[i] != 0) {
        EXPECT_EQ(scales[i], expected_scales[i]) << "scale " << i;
      }
    }
  }
}

}  // namespace
}  // namespace octavo
