#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>

#include "apps/command.h"
#include "base/json.h"
#include "bench/roofs.h"
#include "eval/throughput.h"
#include "runtime/load.h"
#include "runtime/session.h"
#include "runtime/states.h"

namespace octavo {

namespace {

using Clock = std::chrono::steady_clock;

// For each roof; less where the measurements themselves are shorter.
constexpr double kRoofSeconds = 0.5;
constexpr double kLeastRoofSeconds = 0.01;

struct Options {
  std::string model;
  int64_t prefill = 512;
  int64_t context = 16;
  int64_t decode = 128;
  std::vector<int64_t> batches = {1, 8, 32};
  double seconds = 2;
  bool json = false;
};

struct DecodeRate {
  int64_t sequences = 0;
  double tokens_per_second = 0;
  double bytes_per_step = 0;
  double memory_share = 0;  // of the measured read bandwidth
};

struct Measured {
  double load_seconds = 0;
  double first_token_seconds = 0;  // from the start: tokenizer, model, one token
  int64_t peak_memory = 0;         // up to there, and after the prefill and the first batch
  bool int8 = false;
  double prefill = 0;        // tokens per second
  double prefill_share = 0;  // of the roof of what the linear layers run in
  std::vector<DecodeRate> decode;
  ArithmeticRoofs roofs;
  int64_t cache_bytes = 0;  // of keys and values, a token
  int64_t footprint = 0;    // bytes that a step of one sequence reads ...
  double read_rate = 0;     // ... and how fast this machine reads as many, bytes a second
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t PeakMemory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// Tokens of no meaning: speed does not depend on them. Spread over the vocabulary, so that rows of
// the embedding come from memory as they do for a text.
std::vector<TokenId> SomeTokens(int64_t count, int64_t vocab_size) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<TokenId>((i * 7919 + 13) % static_cast<size_t>(vocab_size));
  return tokens;
}

Result<DecodeRate> MeasureBatch(const Options& options, int64_t sequences, const Model& model,
                                const Context& context) {
  const std::vector<TokenId> prompt = SomeTokens(options.context, model.spec.vocab_size);
  DecodeRate rate{.sequences = sequences};
  OCTAVO_ASSIGN_OR_RETURN(
      rate.tokens_per_second,
      MeasureDecode(model, prompt, {.sequences = sequences, .tokens = options.decode},
                    options.seconds, context));
  rate.bytes_per_step =
      static_cast<double>(DecodeBytes(model, sequences, options.context + options.decode / 2));
  return rate;
}

// The roofs come last: their buffers are no memory of the model.
void CompareWithRoofs(const Options& options, const Model& model, const Context& context,
                      Measured* measured) {
  const double seconds = std::clamp(options.seconds, kLeastRoofSeconds, kRoofSeconds);
  measured->roofs = MeasureArithmetic(seconds, context);
  measured->footprint = DecodeBytes(model, 1, options.context + options.decode / 2);
  measured->read_rate = MeasureReadRate(measured->footprint, seconds, context);
  measured->int8 = RunsInInt8(model);
  const double roof = measured->int8 ? measured->roofs.int8 : measured->roofs.f32;
  const double ops = 2 * static_cast<double>(BlockMultiplyAdds(model)) * measured->prefill;
  measured->prefill_share = roof > 0 ? ops / roof : 0;
  for (DecodeRate& rate : measured->decode) {
    const double steps = rate.tokens_per_second / static_cast<double>(rate.sequences);
    rate.memory_share = steps * rate.bytes_per_step / measured->read_rate;
  }
}

Result<Measured> Measure(const Options& options, const Context& context) {
  Measured measured;
  const auto start = Clock::now();
  OCTAVO_RETURN_IF_ERROR(Tokenizer::Load(options.model).status());
  const auto load_start = Clock::now();
  OCTAVO_ASSIGN_OR_RETURN(const auto loaded, LoadModel(options.model, {}, context));
  measured.load_seconds = SecondsSince(load_start);
  const Model& model = loaded->model();
  measured.cache_bytes = CacheBytesOfToken(model, DType::kBF16);
  {
    Session session(model, context, DType::kBF16);
    OCTAVO_RETURN_IF_ERROR(session.Feed(SomeTokens(1, model.spec.vocab_size)).status());
  }
  measured.first_token_seconds = SecondsSince(start);
  OCTAVO_ASSIGN_OR_RETURN(measured.prefill,
                          MeasurePrefill(model, SomeTokens(options.prefill, model.spec.vocab_size),
                                         options.seconds, context));
  for (const int64_t sequences : options.batches) {
    OCTAVO_ASSIGN_OR_RETURN(const DecodeRate rate,
                            MeasureBatch(options, sequences, model, context));
    measured.decode.push_back(rate);
    if (measured.decode.size() == 1) measured.peak_memory = PeakMemory();
  }
  CompareWithRoofs(options, model, context, &measured);
  return measured;
}

Value ToJson(const Options& options, const Measured& measured) {
  Value json = Value::MakeObject();
  json.Set("prefill_tokens", options.prefill);
  json.Set("prefill_tokens_per_second", measured.prefill);
  json.Set("prefill_roof", measured.int8 ? "int8" : "f32");
  json.Set("prefill_share_of_roof", measured.prefill_share);
  Value::Array rows;
  for (const DecodeRate& rate : measured.decode) {
    Value row = Value::MakeObject();
    row.Set("sequences", rate.sequences);
    row.Set("tokens_per_second", rate.tokens_per_second);
    row.Set("bytes_per_step", rate.bytes_per_step);
    row.Set("share_of_bandwidth", rate.memory_share);
    rows.push_back(std::move(row));
  }
  json.Set("decode", std::move(rows));
  json.Set("decode_context", options.context);
  json.Set("cache_bytes_per_token", measured.cache_bytes);
  json.Set("load_seconds", measured.load_seconds);
  json.Set("first_token_seconds", measured.first_token_seconds);
  json.Set("peak_memory_bytes", measured.peak_memory);
  Value roofs = Value::MakeObject();
  roofs.Set("int8_ops", measured.roofs.int8);
  roofs.Set("f32_ops", measured.roofs.f32);
  roofs.Set("read_bytes", measured.read_rate);
  roofs.Set("read_footprint", measured.footprint);
  json.Set("roofs", std::move(roofs));
  return json;
}

std::string Table(const Options& options, const Measured& measured) {
  std::string text = fmt::format(
      "  roofs: {:.0f} GOP/s int8, {:.0f} GFLOP/s f32, {:.1f} GB/s reading {} MB again and again\n",
      measured.roofs.int8 / 1e9, measured.roofs.f32 / 1e9, measured.read_rate / 1e9,
      measured.footprint / 1000000);
  text += fmt::format("  {:<34} {:>10.1f} tokens/s  {:>5.1f} % of the {} roof\n",
                      fmt::format("prefill of {}", options.prefill), measured.prefill,
                      100 * measured.prefill_share, measured.int8 ? "int8" : "f32");
  text += fmt::format("  {:<34} {:>10} tokens, {} bytes of keys and values each\n",
                      "decoding behind", options.context, measured.cache_bytes);
  for (const DecodeRate& rate : measured.decode) {
    text += fmt::format("  {:<34} {:>10.1f} tokens/s  {:>5.1f} % of the bandwidth, {:.2f} x {}\n",
                        fmt::format("decode, {} together", rate.sequences), rate.tokens_per_second,
                        100 * rate.memory_share,
                        rate.tokens_per_second / measured.decode.front().tokens_per_second,
                        measured.decode.front().sequences);
  }
  text += fmt::format("  {:<34} {:>10.3f} s (load {:.3f} s)\n", "start to first token",
                      measured.first_token_seconds, measured.load_seconds);
  text += fmt::format("  {:<34} {:>10.0f} MB\n", "peak memory, one sequence",
                      static_cast<double>(measured.peak_memory) / 1e6);
  return text;
}

Status Run(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const Measured measured, Measure(options, context));
  Print(options.json ? WriteJson(ToJson(options, measured), {.indent = 2}) + "\n"
                     : Table(options, measured));
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description(
      "Tokens per second of a model, as shares of what this machine can do: prefill against the "
      "arithmetic roof, decoding against the read bandwidth");
  app.footer(
      "Examples:\n"
      "  octavo bench model model-w8a8 --batch 1,8,32\n"
      "  octavo bench model model-w8a8-kv8 --context 2048     (what a quantized cache gains)");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_option("--prefill", options->prefill, "Tokens of the prompt")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--context", options->context, "Tokens each decoded sequence starts behind")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--decode", options->decode, "Tokens to decode")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", options->batches, "Sequences decoded together, one row each")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seconds", options->seconds, "Time for each row; the best run counts")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kBenchModelCommand;
const Command kBenchModelCommand = {"model", Add};

}  // namespace octavo
