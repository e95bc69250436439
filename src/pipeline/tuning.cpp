// SPDX-License-Identifier: Apache-2.0
// Equalisation and bias correction, tried and judged.
#include "pipeline/tuning.h"

#include <algorithm>
#include <limits>

#include "calibrate/collect.h"
#include "pipeline/job_steps.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/small_layers.h"
#include "tune/bias_correction.h"
#include "tune/equalize.h"

namespace quench {
namespace {

/// Below this SQNR, in dB, a layer is worth the full correction.
constexpr double kPoorLayer = 30;
/// Equalisation must leave float outputs alone: their SQNR, in dB.
constexpr double kSameFloat = 60;
/// Samples that a trial reads, and those of one run.
constexpr std::int64_t kTrialSamples = 16;
constexpr std::int64_t kTrialRun = 4;

std::vector<TensorMap> trial_runs(const Job& job) {
  const std::int64_t count = std::min(job.parts.calibrate, kTrialSamples);
  return read_runs(job, {0, count}, kTrialRun);
}

/// How near a model comes to float when it is calibrated with a few samples.
double trial(const Model& model, const QuantPlan& plan, const Job& job, const Judge& judge,
             const QuantizeOptions& options, const Context& context) {
  const StatisticMap statistics = calibrate::collect(
      model, observed_values(plan), *job.source,
      {.batch = options.batch, .count = std::min(job.parts.calibrate, kTrialSamples)}, context);
  const QuantSolution solution =
      calibrate::solve(model, plan, statistics, options.config.custom_observers);
  const double plain = judge.sqnr(insert_qdq(model, plan, solution));
  if (!options.bias_correction) return plain;
  // Bias correction mends part of what equalisation does: they are judged together.
  Model biased = model;
  const std::vector<TensorMap> runs = trial_runs(job);
  const tune::LayerMeans means = tune::measure_means(model, plan, runs, context);
  tune::correct_biases(biased, plan, solution, {runs, means}, context);
  return std::max(plain, judge.sqnr(insert_qdq(biased, plan, solution)));
}

/// A quantised model and how good it is.
struct Candidate {
  Model model;
  std::size_t corrected_layers = 0;
  std::vector<OutputScores> outputs;
  double sqnr = -std::numeric_limits<double>::infinity();
};

class BiasTuner {
 public:
  BiasTuner(const Job& job, const Judge& judge, const QuantizeOptions& options,
            const Context& context)
      : job_(job), judge_(judge), options_(options), context_(context) {}

  Candidate run() const {
    Candidate plain = judged(job_.model, 0);
    if (!options_.bias_correction || !job_.source || job_.parts.calibrate == 0) return plain;
    const auto known =
        static_cast<std::int64_t>(job_.means.empty() ? 0 : job_.means.begin()->second.rows.size());
    const std::int64_t samples = known > 0 ? known : correction_samples(job_, options_);
    const std::vector<TensorMap> runs = read_runs(job_, {0, samples}, kTrialRun);
    // Statistics from a file come without means.
    const tune::LayerMeans measured =
        job_.means.empty() ? tune::measure_means(job_.model, job_.plan, runs, context_)
                           : tune::LayerMeans();
    const tune::LayerMeans& means = job_.means.empty() ? measured : job_.means;
    // Where a layer is poor the full correction, which begins with the fast one, is preferred: it
    // mends the means that layers before it have moved. It must only be better than none.
    if (wants_full(plain)) {
      Candidate full = corrected_fully({runs, means});
      if (better(full, plain)) return full;
    }
    if (options_.correction == BiasCorrection::Full) return plain;
    Candidate fast = corrected_fast(means);
    return better(fast, plain) ? std::move(fast) : std::move(plain);
  }

 private:
  Candidate corrected_fully(const tune::CorrectionData& data) const {
    Model biased = job_.model;
    const std::size_t layers =
        tune::correct_biases(biased, job_.plan, job_.solution, data, context_);
    return judged(biased, layers);
  }

  Candidate corrected_fast(const tune::LayerMeans& means) const {
    Model biased = job_.model;
    const std::size_t layers = tune::correct_biases_fast(biased, job_.plan, job_.solution, means);
    return judged(biased, layers);
  }

  Candidate judged(const Model& model, std::size_t layers) const {
    Candidate candidate{.model = insert_qdq(model, job_.plan, job_.solution),
                        .corrected_layers = layers};
    if (!judge_.able()) return candidate;
    candidate.outputs = judge_.scores(candidate.model);
    candidate.sqnr = worst_sqnr(candidate.outputs);
    return candidate;
  }

  /// With nothing to judge by, a correction is trusted.
  bool better(const Candidate& corrected, const Candidate& plain) const {
    return !judge_.able() || corrected.sqnr > plain.sqnr;
  }

  bool wants_full(const Candidate& plain) const {
    if (options_.correction != BiasCorrection::Auto || !judge_.able()) {
      return options_.correction != BiasCorrection::Fast;
    }
    // Where outputs are poor, so is a layer: it need not be looked for.
    return plain.sqnr < kPoorLayer || !tune::poor_layers(job_.model, plain.model, job_.plan,
                                                         judge_.few_runs(), kPoorLayer, context_)
                                           .empty();
  }

  const Job& job_;
  const Judge& judge_;
  const QuantizeOptions& options_;
  const Context& context_;
};

}  // namespace

void equalize_channels(Job& job, const Judge& judge, const QuantizeOptions& options,
                       const Context& context, QuantizeReport& report) {
  // Statistics from a file are those of the model as it is.
  if (!judge.able() || !options.statistics.empty()) return;
  if (options.equalization == Equalization::Never) return;
  const bool one_grid = std::ranges::any_of(job.plan.weights, [](const WeightPlan& each) {
    return each.input == 1 && each.spec.axis < 0;
  });
  // Elsewhere it gains little: measured, a third of a dB on MobileNetV2.
  const bool asked = options.equalization == Equalization::Always;
  if (!asked && !one_grid && !tune::has_gates(job.model)) return;
  Model scaled = job.model;
  const tune::Equalized done = tune::equalize(scaled, job.plan, trial_runs(job), context);
  if (done.groups == 0) return;
  if (!asked && !one_grid && done.gates == 0) return;
  if (judge.sqnr(scaled) < kSameFloat) return;
  QuantConfig config = without_small_layers(scaled.graph, options);
  config.skip_quant_node.insert(config.skip_quant_node.end(), done.float_nodes.begin(),
                                done.float_nodes.end());
  QuantPlan plan = make_plan(scaled, config);
  const bool better = asked || trial(scaled, plan, job, judge, options, context) >
                                   trial(job.model, job.plan, job, judge, options, context);
  if (!better) return;
  job.model = std::move(scaled);
  job.plan = std::move(plan);
  report.equalized_groups = done.groups;
}

Model with_biases(const Job& job, const Judge& judge, const QuantizeOptions& options,
                  const Context& context, QuantizeReport& report) {
  Candidate best = BiasTuner(job, judge, options, context).run();
  report.corrected_layers = best.corrected_layers;
  report.outputs = std::move(best.outputs);
  return std::move(best.model);
}

}  // namespace quench
