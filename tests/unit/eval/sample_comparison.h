// A comparison with every part filled, for tests of what is written from it.
#pragma once

#include <cmath>
#include <string>

#include "eval/comparison.h"

namespace octavo::testing {

inline PredictionQuality SampleQuality(double nll) {
  PredictionQuality quality;
  quality.nll = {nll, 0.05};
  quality.perplexity = {std::exp(nll), 0.05 * std::exp(nll)};
  for (size_t i = 0; i < kCalibrationBins; ++i) {
    const double probability = (static_cast<double>(i) + 0.5) / 10;
    quality.calibration[i] = {static_cast<int64_t>(500 - 40 * i), probability,
                              probability - 0.02 * nll * probability * (1 - probability)};
  }
  quality.calibration_error = 0.02;
  return quality;
}

inline Divergence SampleDivergence(double kl) {
  Divergence divergence;
  divergence.kl = {.mean = {kl, kl / 20},
                   .median = kl / 2,
                   .percentile_99 = 6 * kl,
                   .percentile_999 = 15 * kl,
                   .largest = 40 * kl,
                   .histogram = {}};
  for (int i = -24; i <= 4; ++i) {
    divergence.kl.histogram.edges.push_back(std::pow(10.0, i / 4.0));
    const double distance = i / 4.0 - std::log10(kl / 2);
    divergence.kl.histogram.counts.push_back(
        static_cast<int64_t>(1000 * std::exp(-distance * distance)));
  }
  divergence.kl.histogram.counts.push_back(0);
  divergence.same_top1 = 0.9;
  divergence.same_top5 = 0.92;
  divergence.true_token = {0.001, 0.04, {-0.1, -0.05, -0.01, 0, 0.01, 0.05, 0.1}};
  divergence.perplexity_ratio = {1 + kl, kl / 10};
  return divergence;
}

// An original and `models` models made from it.
inline Comparison SampleComparison(int models) {
  Comparison comparison;
  comparison.run = {"0.1.0", "avx2, 2 threads", "octavo compare model out --text wiki.txt",
                    "2026-11-30 12:00 UTC"};
  comparison.text = "wiki.txt, 8 windows of 512 tokens";
  comparison.base.label = comparison.base.folder = "model";
  comparison.base.scheme = "BF16";
  comparison.base.bytes = 269'000'000;
  comparison.base.bits_per_weight = 16;
  comparison.base.speed = {512, 900, 70};
  comparison.base.provenance = {{{"model.safetensors", std::string(64, 'a')}}, "", ""};
  comparison.lockstep.emplace();
  comparison.lockstep->windows = 8;
  comparison.lockstep->positions = 4096;
  comparison.lockstep->tokens = 4088;
  comparison.lockstep->base = SampleQuality(3.4);
  for (int i = 0; i < models; ++i) {
    ComparedModel& model = comparison.models.emplace_back();
    model.label = model.folder = "model-" + std::to_string(i);
    model.scheme = "int8 channel, input int8 token dynamic";
    model.bytes = 163'000'000 / (i + 1);
    model.bits_per_weight = 9.7 / (i + 1);
    model.speed = {512, 2700, 160};
    model.provenance = {{{"model.safetensors", std::string(64, 'b')}},
                        "quant_stage:\n  quant_modifiers: {}\n",
                        "recipe.yaml"};
    const double kl = 0.016 * std::pow(4, i);
    comparison.lockstep->models.push_back({SampleQuality(3.4 + kl), SampleDivergence(kl)});
    PairedTask task{.name = "gsm8k", .documents = 250, .figures = {}};
    task.figures.push_back({.metric = "exact_match",
                            .filter = "strict-match",
                            .higher_is_better = true,
                            .base = 0.4,
                            .model = 0.392,
                            .recovery = 98,
                            .difference = {-0.02, 0.004},
                            .mcnemar = McNemar{5, 3, 0.727, 0.032},
                            .sentence = model.label + " scores 0.8 points lower"});
    comparison.tasks.push_back({task});
    LayerComparison& layers = comparison.layers.emplace_back();
    for (int64_t block = 0; block < 12; ++block) {
      for (const char* projection :
           {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}) {
        const double error = kl / 10 * (1 + 0.5 * std::sin(static_cast<double>(block))) *
                             (projection[0] == 'd' ? 5 : 1 + 0.1 * (projection[0] - 'a'));
        layers.layers.push_back({.name = "model.layers." + std::to_string(block) + "." + projection,
                                 .block = block,
                                 .projection = projection,
                                 .scheme = "W8A8",
                                 .output = OutputError{error, 1 - error / 2},
                                 .weight_sqnr_db = 38.2,
                                 .outliers_before = 24.5,
                                 .outliers_after = 6.1});
      }
      layers.blocks.push_back({"model.layers." + std::to_string(block),
                               OutputError{kl / 20, 1 - kl / 40},
                               OutputError{kl / 20 * static_cast<double>(block + 1), 1}});
    }
    comparison.sensitivities.push_back(
        {{{0, {0}, {"model.layers.0.q_proj", "model.layers.0.k_proj"}}, kl / 20}});
    comparison.bounds.push_back({.model = model.label,
                                 .bound = "max_kl",
                                 .limit = 0.02,
                                 .measured = kl,
                                 .passed = kl <= 0.02,
                                 .text = "KL divergence, at most 0.02"});
  }
  return comparison;
}

}  // namespace octavo::testing
