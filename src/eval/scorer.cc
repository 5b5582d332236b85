#include "eval/scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "eval/prefix_tree.h"
#include "eval/windows.h"
#include "model/forward.h"
#include "runtime/sampler.h"
#include "runtime/states.h"

namespace octavo {

namespace {

// A node to be computed behind the state of the one above (null: none).
struct Work {
  const PrefixNode* node;
  const SequenceState* parent;

  int64_t rows() const { return node->end - node->begin; }
};

}  // namespace

struct Scorer::State {
  State(const Model& m, const Context& c, const ScorerOptions& o)
      : model(m), context(c), options(o), forward(m, c) {
    // Frequencies that change with the length are those of the whole sequence: nothing is shared.
    if (model.spec.depends_on_length())
      options.min_shared = std::numeric_limits<int64_t>::max() / 2;
  }

  Status RunAll(std::vector<Work> work);
  Status RunPass(std::span<const Work> pass);
  // Rows of tokens [begin, end) of each node, behind what its state has.
  Status Feed(std::span<const Work> pass, std::span<SequenceState* const> states, int64_t begin,
              int64_t end);
  Status ScoreRows(std::span<const Work> pass);
  void Take(const Work& work, int64_t position, std::span<const float> logits, double normalizer,
            int32_t most_likely);
  int64_t BytesOf(const Work& work) const {
    return work.node->end * model.spec.num_layers * model.spec.kv_size() * 2 *
           static_cast<int64_t>(sizeof(float));
  }
  const FedTokens& Request(int64_t place) const {
    return requests[static_cast<size_t>(tree.order[static_cast<size_t>(place)])];
  }
  // The first row of a node that some request needs the logits of.
  int64_t FirstWanted(const PrefixNode& node) const {
    int64_t wanted = node.end;
    for (int64_t place = node.first; place < node.last; ++place)
      wanted = std::min(wanted, std::max(node.begin, Request(place).first_scored));
    return wanted;
  }

  const Model& model;
  const Context& context;
  ScorerOptions options;
  Forward forward;
  int64_t tokens_computed = 0;

  // Of one call of Score.
  std::span<const FedTokens> requests;
  PrefixTree tree;
  std::vector<Loglikelihood> results;

  Batch batch;
  std::vector<size_t> row_work;  // which of the pass each row of the batch is of
  std::vector<float> hidden;
  std::vector<float> logits;
};

Scorer::Scorer(const Model& model, const Context& context, const ScorerOptions& options)
    : state_(std::make_unique<State>(model, context, options)) {}
Scorer::~Scorer() = default;

int64_t Scorer::tokens_computed() const {
  return state_->tokens_computed;
}

Result<std::vector<Loglikelihood>> Scorer::Score(std::span<const FedTokens> requests) {
  State& state = *state_;
  state.requests = requests;
  state.results.assign(requests.size(), {});
  std::vector<std::span<const TokenId>> sequences;
  for (const FedTokens& request : requests) {
    if (std::ssize(request.tokens) > state.model.spec.max_positions)
      return InvalidArgument(fmt::format("{} tokens are more than the model's {} positions",
                                         request.tokens.size(), state.model.spec.max_positions));
    sequences.emplace_back(request.tokens);
  }
  state.tree = BuildPrefixTree(sequences, state.options.min_shared);
  std::vector<Work> work;
  work.reserve(state.tree.roots.size());
  for (const PrefixNode& root : state.tree.roots) work.push_back({&root, nullptr});
  OCTAVO_RETURN_IF_ERROR(state.RunAll(std::move(work)));
  return std::move(state.results);
}

Status Scorer::State::RunAll(std::vector<Work> work) {
  // Longest first: what is too large shows at once, and passes are filled by like lengths.
  std::stable_sort(work.begin(), work.end(),
                   [](const Work& a, const Work& b) { return a.rows() > b.rows(); });
  for (size_t first = 0; first < work.size();) {
    size_t last = first;
    int64_t rows = 0;
    int64_t bytes = 0;
    do {
      rows += work[last].rows();
      bytes += BytesOf(work[last]);
      ++last;
    } while (last < work.size() && rows + work[last].rows() <= options.rows &&
             bytes + BytesOf(work[last]) <= options.state_bytes);
    OCTAVO_RETURN_IF_ERROR(RunPass(std::span(work).subspan(first, last - first)));
    first = last;
  }
  return OkStatus();
}

Status Scorer::State::RunPass(std::span<const Work> pass) {
  OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
  std::vector<SequenceState> states;
  std::vector<SequenceState*> pointers;
  states.reserve(pass.size());
  int64_t longest = 0;
  for (const Work& work : pass) {
    states.push_back(work.parent != nullptr ? work.parent->Fork()
                                            : MakeSequenceState(model, DType::kF32));
    pointers.push_back(&states.back());
    longest = std::max(longest, work.rows());
  }
  // One node alone may be longer than a pass; several are not.
  const int64_t piece = pass.size() == 1 ? options.rows : longest;
  for (int64_t begin = 0; begin < longest; begin += piece) {
    OCTAVO_RETURN_IF_ERROR(Feed(pass, pointers, begin, begin + piece));
    OCTAVO_RETURN_IF_ERROR(ScoreRows(pass));
  }
  std::vector<Work> children;
  for (size_t i = 0; i < pass.size(); ++i) {
    for (const PrefixNode& child : pass[i].node->children) children.push_back({&child, &states[i]});
  }
  return RunAll(std::move(children));
}

Status Scorer::State::Feed(std::span<const Work> pass, std::span<SequenceState* const> states,
                           int64_t begin, int64_t end) {
  batch.Clear();
  row_work.clear();
  for (size_t i = 0; i < pass.size(); ++i) {
    const PrefixNode& node = *pass[i].node;
    const std::vector<TokenId>& tokens = Request(node.first).tokens;
    const int64_t last = std::min(node.end, node.begin + end);
    for (int64_t position = node.begin + begin; position < last; ++position) {
      batch.Add(tokens[static_cast<size_t>(position)], static_cast<int32_t>(i), position, false);
      row_work.push_back(i);
    }
    batch.lengths.push_back(node.end);
  }
  tokens_computed += batch.rows();
  hidden.resize(static_cast<size_t>(batch.rows() * model.spec.hidden_size));
  OCTAVO_RETURN_IF_ERROR(forward.Embed(batch, hidden));
  for (int64_t block = 0; block < model.spec.num_layers; ++block) {
    forward.Block(block, batch, states, hidden);
    OCTAVO_RETURN_IF_ERROR(CheckFinite(hidden, model.blocks[static_cast<size_t>(block)].name));
  }
  return OkStatus();
}

Status Scorer::State::ScoreRows(std::span<const Work> pass) {
  std::vector<int64_t> first_wanted;
  for (const Work& work : pass) first_wanted.push_back(FirstWanted(*work.node));
  std::vector<size_t> wanted;
  for (size_t row = 0; row < row_work.size(); ++row) {
    if (batch.position[row] >= first_wanted[row_work[row]]) wanted.push_back(row);
  }
  const auto vocab = static_cast<size_t>(model.spec.vocab_size);
  // The logits of all rows at once would fill 100 MB.
  for (size_t first = 0; first < wanted.size(); first += kLogitRows) {
    const size_t count = std::min<size_t>(kLogitRows, wanted.size() - first);
    std::fill(batch.want_logits.begin(), batch.want_logits.end(), uint8_t{0});
    for (size_t i = 0; i < count; ++i) batch.want_logits[wanted[first + i]] = 1;
    logits.resize(count * vocab);
    forward.Head(batch, hidden, logits);
    std::vector<double> normalizers(count);
    std::vector<int32_t> most_likely(count);
    context.pool.ParallelFor(static_cast<int64_t>(count), [&](int64_t i) {
      const auto index = static_cast<size_t>(i);
      const auto row = std::span<const float>(logits).subspan(index * vocab, vocab);
      normalizers[index] = LogSumExp(row);
      most_likely[index] = Argmax(row);
    });
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(normalizers[i]))
        return InvalidArgument("the head computes NaN or infinite logits");
      const size_t row = wanted[first + i];
      Take(pass[row_work[row]], batch.position[row],
           std::span<const float>(logits).subspan(i * vocab, vocab), normalizers[i],
           most_likely[i]);
    }
  }
  return OkStatus();
}

void Scorer::State::Take(const Work& work, int64_t position, std::span<const float> row,
                         double normalizer, int32_t most_likely) {
  for (int64_t place = work.node->first; place < work.node->last; ++place) {
    const FedTokens& request = Request(place);
    if (position < request.first_scored) continue;
    const TokenId target = request.target(position);
    Loglikelihood& result = results[static_cast<size_t>(tree.order[static_cast<size_t>(place)])];
    result.sum += static_cast<double>(row[static_cast<size_t>(target)]) - normalizer;
    result.is_greedy = result.is_greedy && target == most_likely;
  }
}

}  // namespace octavo
