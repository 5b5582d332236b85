#include "inspect/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace octavo {

#define OCTAVO_ENGINE(record) extern const Engine record;
#include "inspect/engines/engines.inc"
#undef OCTAVO_ENGINE

namespace {

constexpr const Engine* kEngines[] = {
#define OCTAVO_ENGINE(record) &record,
#include "inspect/engines/engines.inc"
#undef OCTAVO_ENGINE
};

constexpr Machine kMachines[] = {
    {"Turing (SM75)", 75},
    {"Ampere (SM80)", 80},
    {"Ampere (SM86)", 86},
    {"Ada (SM89)", 89},
    {"Hopper (SM90)", 90},
    {"Blackwell data centre (SM100)", 100},
    {"Blackwell workstation (SM120)", 120},
    {"CPU AVX2", 0, CpuLevel::kAvx2},
    {"CPU AVX-512", 0, CpuLevel::kAvx512},
    {"CPU AMX", 0, CpuLevel::kAmx},
};

// The config's patterns, as engines read them.
class EnginePatterns {
 public:
  explicit EnginePatterns(const QuantizationConfig& config) : config_(config) {
    for (const std::string& text : config.ignore) {
      if (auto pattern = ModulePattern::Make(text); pattern.ok())
        ignore_.push_back(std::move(pattern).value());
    }
    for (size_t group = 0; group < config.config_groups.size(); ++group) {
      for (const std::string& text : config.config_groups[group].second.targets)
        AddTarget(text, group);
    }
  }

  // Classes do not count in `ignore` (inference-schemes 1.2).
  bool IsIgnored(const LinearLayer& layer) const {
    return std::any_of(ignore_.begin(), ignore_.end(), [&](const ModulePattern& pattern) {
      return MatchOf(pattern, layer) <= MatchKind::kRegex;
    });
  }

  // The group that the first target in the order of the file hits: by name, else by class. Null:
  // none.
  const QuantizationScheme* FirstTarget(const LinearLayer& layer) const {
    const Target* by_class = nullptr;
    for (const Target& target : targets_) {
      const MatchKind match = MatchOf(target.pattern, layer);
      if (match <= MatchKind::kRegex) return &config_.config_groups[target.group].second;
      if (match == MatchKind::kClass && by_class == nullptr) by_class = &target;
    }
    return by_class == nullptr ? nullptr : &config_.config_groups[by_class->group].second;
  }

 private:
  struct Target {
    ModulePattern pattern;
    size_t group;
  };

  // A target that is named again keeps its place and gets the later group.
  void AddTarget(const std::string& text, size_t group) {
    for (Target& target : targets_) {
      if (target.pattern.text() != text) continue;
      target.group = group;
      return;
    }
    if (auto pattern = ModulePattern::Make(text); pattern.ok())
      targets_.push_back({std::move(pattern).value(), group});
  }

  static MatchKind MatchOf(const ModulePattern& pattern, const LinearLayer& layer) {
    const auto match = pattern.Match({layer.name, "Linear"});
    return match.ok() ? *match : MatchKind::kNone;
  }

  const QuantizationConfig& config_;
  std::vector<ModulePattern> ignore_;
  std::vector<Target> targets_;
};

bool Alike(const Subject& a, const Subject& b) {
  const auto flags = [](const Subject& s) {
    return std::tuple(s.kind, s.k, s.splits_k, s.is_ignored, s.is_torn, s.is_partly_ignored);
  };
  const auto args = [](const Subject& s) {
    return std::tie(s.declared->weights, s.declared->input_activations,
                    s.declared->output_activations, s.declared->format);
  };
  return flags(a) == flags(b) && a.n == b.n && args(a) == args(b);
}

Subject SubjectOf(ModuleKind kind, std::span<const LinearLayer> layers) {
  const LinearLayer& first = layers.front();
  Subject subject = {
      .kind = kind, .name = first.name, .declared = &first.quantization, .k = first.k};
  for (const LinearLayer& layer : layers) {
    subject.n.push_back(layer.n);
    if (layer.quantization.weights.has_value() != first.quantization.weights.has_value())
      subject.is_partly_ignored = true;
    else if (!SameQuantization(layer.quantization, first.quantization))
      subject.is_torn = true;
  }
  return subject;
}

bool IsRefusal(const Finding& finding) {
  return finding.outcome == Outcome::kRefused;
}

// Each group of layers that run as one, and the embedding.
std::vector<std::pair<Subject, std::span<const LinearLayer>>> EverySubject(
    const Inspection& inspection) {
  std::optional<EnginePatterns> patterns;
  if (inspection.config) patterns.emplace(*inspection.config);
  std::vector<std::pair<Subject, std::span<const LinearLayer>>> subjects;
  const auto add = [&](ModuleKind kind, std::span<const LinearLayer> layers) -> Subject& {
    Subject& subject = subjects.emplace_back(SubjectOf(kind, layers), layers).first;
    subject.is_foreign =
        inspection.config && inspection.config->quant_method != "compressed-tensors";
    if (!patterns) subject.is_ignored = true;  // nothing is to be matched
    if (patterns && !subject.declared->weights)
      subject.is_ignored = patterns->IsIgnored(layers.front());
    return subject;
  };
  const Model& model = *inspection.model;
  for (const Block& block : model.blocks) {
    for (const LinearGroup* group : block.groups()) {
      Subject& subject = add(ModuleKind::kLinear, group->layers);
      subject.splits_k = group == &block.attention_output || group == &block.down;
    }
  }
  add(ModuleKind::kEmbedding, {&model.embedding_layer, 1});
  if (!model.head_is_embedding) add(ModuleKind::kHead, model.head.layers);
  return subjects;
}

// Whether layers that run as one have input scales or zero points of their own.
bool HasTornInputs(const Checkpoint& checkpoint, const LinearGroup& group) {
  const auto bytes_of = [&](const LinearLayer& layer, std::string_view suffix) {
    const auto view = checkpoint.Find(fmt::format("{}.{}", layer.name, suffix));
    return view.ok() ? std::span(view->bytes, static_cast<size_t>(view->num_bytes()))
                     : std::span<const std::byte>();
  };
  const auto differs = [&](std::string_view suffix) {
    const auto first = bytes_of(group.layers.front(), suffix);
    return std::any_of(group.layers.begin(), group.layers.end(), [&](const LinearLayer& layer) {
      const auto bytes = bytes_of(layer, suffix);
      return !std::equal(bytes.begin(), bytes.end(), first.begin(), first.end());
    });
  };
  return differs("input_scale") || differs("input_zero_point");
}

// Findings that say the same are one.
void AddFindings(std::vector<Finding> found, const std::string& where, Verdict* verdict) {
  for (Finding& finding : found) {
    verdict->outcome = std::max(verdict->outcome, finding.outcome);
    const bool known =
        std::any_of(verdict->findings.begin(), verdict->findings.end(), [&](const Finding& one) {
          return one.outcome == finding.outcome && one.text == finding.text &&
                 one.remedy == finding.remedy;
        });
    if (known) continue;
    finding.where = where;
    verdict->findings.push_back(std::move(finding));
  }
}

}  // namespace

std::span<const Machine> AllMachines() {
  return kMachines;
}

std::span<const Engine* const> AllEngines() {
  return kEngines;
}

int64_t Subject::total_n() const {
  return std::accumulate(n.begin(), n.end(), int64_t{0});
}

std::string_view OutcomeName(Outcome outcome) {
  constexpr std::string_view kNames[] = {"native", "unknown", "fallback", "refused"};
  return kNames[static_cast<size_t>(outcome)];
}

std::vector<Subject> SubjectsOf(const Inspection& inspection) {
  std::vector<Subject> subjects;
  for (auto& [subject, layers] : EverySubject(inspection)) {
    if (std::none_of(subjects.begin(), subjects.end(),
                     [&](const Subject& known) { return Alike(known, subject); }))
      subjects.push_back(std::move(subject));
  }
  return subjects;
}

Subject SubjectWith(const Inspection& inspection, const LinearLayer& layer) {
  for (auto& [subject, layers] : EverySubject(inspection)) {
    if (std::any_of(layers.begin(), layers.end(),
                    [&](const LinearLayer& one) { return &one == &layer; }))
      return std::move(subject);
  }
  OCTAVO_CHECK(false) << layer.name << " is of another model";
  return {};
}

ModelFacts FactsOf(const Inspection& inspection, std::vector<FusedScaleLoss> losses) {
  ModelFacts facts;
  facts.losses = std::move(losses);
  if (!inspection.config) return facts;
  facts.config = &*inspection.config;
  const EnginePatterns patterns(*inspection.config);
  for (const InspectedModule& module : inspection.modules) {
    if (module.kind != ModuleKind::kLinear || !module.layer->quantization.weights) continue;
    const QuantizationScheme* first = patterns.FirstTarget(*module.layer);
    if (first != nullptr && !SameQuantization(*first, module.layer->quantization))
      facts.other_targets.push_back(module.name);
  }
  if (inspection.checkpoint == nullptr) return facts;
  for (const Block& block : inspection.model->blocks) {
    for (const LinearGroup* group : block.groups()) {
      if (HasTornInputs(*inspection.checkpoint, *group))
        facts.torn_inputs.push_back(group->layers.front().name);
    }
  }
  return facts;
}

Verdict JudgeAll(const Engine& engine, const Machine& machine, std::span<const Subject> subjects,
                 const ModelFacts& facts) {
  Verdict verdict = {.engine = &engine, .machine = &machine};
  for (const Subject& subject : subjects) {
    Judgement judgement = engine.judge(subject, machine);
    if (!judgement.row.empty() &&
        std::find(verdict.rows.begin(), verdict.rows.end(), judgement.row) == verdict.rows.end())
      verdict.rows.push_back(std::move(judgement.row));
    // What would happen to a layer that is refused never does.
    if (std::any_of(judgement.findings.begin(), judgement.findings.end(), IsRefusal))
      std::erase_if(judgement.findings, std::not_fn(IsRefusal));
    AddFindings(std::move(judgement.findings), subject.name, &verdict);
  }
  AddFindings(engine.judge_model(facts, machine), "", &verdict);
  std::vector<Finding> found = std::exchange(verdict.findings, {});
  for (const Outcome outcome :
       {Outcome::kRefused, Outcome::kFallback, Outcome::kUnknown, Outcome::kNative}) {
    for (Finding& finding : found) {
      if (finding.outcome == outcome) verdict.findings.push_back(std::move(finding));
    }
  }
  return verdict;
}

}  // namespace octavo
