#include "eval/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/scheduler.h"
#include "runtime/session.h"
#include "runtime/states.h"

namespace octavo {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

SequenceState Fork(const SequenceState& state) {
  SequenceState copy;
  for (const auto& layer : state.layers) copy.layers.push_back(layer->Fork());
  return copy;
}

// One run of `load`, each sequence in a copy of `begun`, which remembers all of `prompt` but its
// last token; the rate of the steps after the first.
Result<double> DecodeOnce(ModelPass* pass, std::span<const TokenId> prompt, const DecodeLoad& load,
                          const SequenceState& begun) {
  Scheduler scheduler(pass);
  std::vector<SequenceState> states;
  states.reserve(static_cast<size_t>(load.sequences));
  for (int64_t i = 0; i < load.sequences; ++i) states.push_back(Fork(begun));
  for (SequenceState& state : states) {
    OCTAVO_RETURN_IF_ERROR(scheduler
                               .Add({.prompt = {prompt.begin(), prompt.end()},
                                     .state = &state,
                                     .options = {.max_tokens = load.tokens + 1},
                                     .tokenizer = nullptr,
                                     .on_text = nullptr})
                               .status());
  }
  scheduler.Step();
  const auto start = Clock::now();
  while (!scheduler.idle()) {
    for (const Scheduler::Finished& finished : scheduler.Step())
      OCTAVO_RETURN_IF_ERROR(finished.result.status());
  }
  OCTAVO_RETURN_IF_ERROR(pass->context().CheckCancelled());
  return static_cast<double>(load.sequences * load.tokens) / SecondsSince(start);
}

double BytesPerWeight(const LinearLayer& layer) {
  return layer.quantization.weights ? static_cast<double>(layer.quantization.weights->num_bits) / 8
                                    : static_cast<double>(DTypeBytes(layer.model_dtype));
}

}  // namespace

Result<double> MeasurePrefill(const Model& model, std::span<const TokenId> prompt, double seconds,
                              const Context& context) {
  constexpr int kTimes = 3;
  double best = 0;
  const auto start = Clock::now();
  for (int i = 0; i < kTimes || SecondsSince(start) < seconds; ++i) {
    Session session(model, context, DType::kBF16);
    const auto begin = Clock::now();
    OCTAVO_RETURN_IF_ERROR(session.Feed(prompt).status());
    best = std::max(best, static_cast<double>(prompt.size()) / SecondsSince(begin));
  }
  return best;
}

Result<double> MeasureDecode(const Model& model, std::span<const TokenId> prompt,
                             const DecodeLoad& load, double seconds, const Context& context) {
  const int64_t positions = std::ssize(prompt) + load.tokens;
  if (prompt.empty() || positions > model.spec.max_positions) {
    return InvalidArgument(
        fmt::format("a prompt of {} tokens and {} decoded behind it are more than the model's {} "
                    "positions",
                    prompt.size(), load.tokens, model.spec.max_positions));
  }
  Session session(model, context, DType::kBF16);
  if (prompt.size() > 1)
    OCTAVO_RETURN_IF_ERROR(session.Feed(prompt.first(prompt.size() - 1)).status());
  ModelPass pass(model, context);
  double best = 0;
  const auto start = Clock::now();
  do {
    OCTAVO_ASSIGN_OR_RETURN(const double rate, DecodeOnce(&pass, prompt, load, session.state()));
    best = std::max(best, rate);
  } while (SecondsSince(start) < seconds);
  return best;
}

int64_t BlockMultiplyAdds(const Model& model) {
  int64_t sum = 0;
  for (const Block& block : model.blocks) {
    for (const LinearGroup* group : block.groups()) sum += group->n() * group->k();
  }
  return sum;
}

int64_t ParameterCount(const Model& model) {
  const ModelSpec& spec = model.spec;
  int64_t sum = spec.vocab_size * spec.hidden_size + spec.hidden_size;  // embedding, final norm
  const auto add = [&](const LinearGroup& group) {
    for (const LinearLayer& layer : group.layers)
      sum += layer.n * layer.k + (layer.has_bias ? layer.n : 0);
  };
  for (const Block& block : model.blocks) {
    for (const LinearGroup* group : block.groups()) add(*group);
    for (const Norm* norm : block.norms()) sum += norm->size;
  }
  if (!spec.tie_word_embeddings) add(model.head);
  return sum;
}

int64_t DecodeBytes(const Model& model, int64_t sequences, int64_t positions) {
  double bytes = 0;
  const auto add = [&](const LinearGroup& group) {
    for (const LinearLayer& layer : group.layers)
      bytes += BytesPerWeight(layer) * static_cast<double>(layer.n * layer.k);
  };
  for (const Block& block : model.blocks) {
    for (const LinearGroup* group : block.groups()) add(*group);
  }
  add(model.head);
  return static_cast<int64_t>(bytes) +
         sequences * positions * CacheBytesOfToken(model, DType::kBF16);
}

bool RunsInInt8(const Model& model) {
  const auto int8 = [](const std::optional<QuantizationArgs>& args) {
    return args && args->type == QuantizationType::kInt && args->num_bits == 8;
  };
  return std::all_of(model.blocks.begin(), model.blocks.end(), [&](const Block& block) {
    const auto groups = block.groups();
    return std::all_of(groups.begin(), groups.end(), [&](const LinearGroup* group) {
      return std::all_of(group->layers.begin(), group->layers.end(), [&](const LinearLayer& layer) {
        return int8(layer.quantization.weights) && int8(layer.quantization.input_activations);
      });
    });
  });
}

}  // namespace octavo
