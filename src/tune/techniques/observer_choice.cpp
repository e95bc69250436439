// SPDX-License-Identifier: Apache-2.0
// Where no rule names an observer of activations, samples choose.
#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/collect.h"
#include "plan/layers_behind.h"
#include "tune/bias_correction.h"
#include "tune/technique.h"
#include "tune/telling_samples.h"

namespace quench::tune {
namespace {

/// Clips nothing that was seen: what every other choice is held against, output by output.
constexpr const char* kWhole = "min_max";
/// The least error value by value is not always the least error in the outputs: behind a bounded
/// activation it keeps peaks that hardly matter (MobileNetV2: 2 dB). The mean of the samples'
/// ranges cuts them.
constexpr const char* kCutting = "avg";
/// A difference in dB below this is not worth another observer.
constexpr double kWorth = 0.25;
/// The most, in dB, that an output may lose beside min_max. On other samples it may be as much
/// again.
constexpr double kMayLose = 0.5;
/// Samples to look at, and where outputs have few values.
constexpr std::int64_t kSamples = 16;
constexpr std::int64_t kMostSamples = 64;
constexpr std::int64_t kRun = 4;  ///< samples

/// How many errors tell their energy as exactly as differences are looked at: the energy of n
/// errors varies by sqrt(2 / n) of itself, and 4.343 dB are a factor of e.
std::int64_t enough_values() {
  constexpr double kDecibels = 4.343;
  return static_cast<std::int64_t>(2 * std::pow(kDecibels / kWorth, 2));
}

bool names_observer(const QuantConfig& config) {
  const auto named = [](const auto& entry) { return entry.second.activation_observer.has_value(); };
  return config.global.activation_observer.has_value() || !config.value_observers.empty() ||
         std::ranges::any_of(config.by_layer, named) ||
         std::ranges::any_of(config.by_name, named) || std::ranges::any_of(config.by_type, named);
}

/// What one trial made of the outputs, sample by sample.
using Noise = std::vector<metrics::OutputNoise>;

/// Whether a difference is more than chance, and more than `least` dB.
bool is_clear(const metrics::Difference& difference, double least) {
  return difference.db > least && difference.db > difference.error;
}

/// Whether no output is clearly further from float than without clipping: neither in all its values
/// nor in those far from the usual. A detector's finds are few, and all that matters.
bool admissible(const Noise& trial, const Noise& whole) {
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const auto measure : {metrics::sqnr_without, metrics::nearness_without}) {
      const metrics::Difference loss = metrics::paired(whole[i].size(), [&](std::size_t skipped) {
        return measure(whole[i], skipped) - measure(trial[i], skipped);
      });
      if (is_clear(loss, kMayLose)) return false;
    }
  }
  return true;
}

double worst_without(const Noise& trial, std::size_t skipped) {
  double worst = std::numeric_limits<double>::infinity();
  for (const metrics::OutputNoise& output : trial) {
    worst = std::min(worst, metrics::sqnr_without(output, skipped));
  }
  return worst;
}

/// Of the trials, the last of which clips nothing, the first that is admissible and that none
/// behind it is clearly better than. Where the outputs have too few values to tell a loss, a trial
/// must be clearly better than clipping nothing.
std::size_t pick(const std::vector<Noise>& trials, bool few_values) {
  const std::size_t last = trials.size() - 1;
  std::size_t best = last;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (i != last && !admissible(trials[i], trials[last])) continue;
    const auto gain = [&](std::size_t skipped) {
      return worst_without(trials[i], skipped) - worst_without(trials[best], skipped);
    };
    const bool first = best == last && !few_values;
    if (first || is_clear(metrics::paired(trials[i][0].size(), gain), kWorth)) best = i;
  }
  return best;
}

/// Tries observers on a job whose own solution has the default one.
class Chooser {
 public:
  Chooser(const State& state, const QuantConfig& config, const Context& context)
      : state_(state),
        own_(config.default_activation_observer),
        distances_(plan::layers_behind(state.model.graph)) {
    params_[own_] = state.solution.values;
    for (const std::string observer : {kCutting, kWhole}) {
      if (params_.contains(observer)) continue;
      QuantPlan plan;
      plan.values = state.plan.values;
      for (auto& [name, value] : plan.values) value.spec.observer = observer;
      params_[observer] = calibrate::solve(state.model, plan, state.statistics,
                                           config.custom_observers, context.num_threads())
                              .values;
    }
    // Clipping costs the more the fewer layers come behind it: errors have less to drown in.
    const int half = furthest() / 2;
    for (const std::string& observer : {own_, std::string(kCutting)}) {
      if (observer == kWhole || (!trials_.empty() && observer == own_)) continue;
      trials_.push_back({.observer = observer});
      if (half > 0) trials_.push_back({.observer = observer, .unclipped_layers = half});
    }
    trials_.push_back({.observer = kWhole});
  }

  /// Scores all trials; the best one's place.
  std::size_t run(const evaluation::Evaluator& evaluator, bool few_values) {
    std::vector<Noise> noise(trials_.size());
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      QuantPlan plan = state_.plan;
      QuantSolution solution = state_.solution;
      apply(trials_[i], plan, solution);
      // Clipping shifts means, which biases make up for: trials are as they would be written.
      Model model = state_.model;
      if (state_.options.bias_correction && !state_.means.empty()) {
        correct_biases_fast(model, plan, solution, state_.means);
      }
      trials_[i].outputs = evaluator.scores(insert_qdq(model, plan, solution), &noise[i]);
    }
    const std::size_t best = pick(noise, few_values);
    trials_[best].chosen = true;
    return best;
  }

  /// Changes observers and scales to those of a trial.
  void apply(const ObserverTrial& trial, QuantPlan& plan, QuantSolution& solution) const {
    for (auto& [name, value] : plan.values) {
      const bool shared = value.kind == ValuePlan::Kind::SharedWith;
      const bool whole = distance(shared ? value.source : name) <= trial.unclipped_layers;
      const std::string observer = whole ? kWhole : trial.observer;
      if (observer == own_) continue;
      value.spec.observer = observer;
      const auto params = params_.at(observer).find(name);
      if (params != params_.at(observer).end()) solution.values[name] = params->second;
    }
  }

  std::vector<ObserverTrial>& trials() { return trials_; }

 private:
  int distance(const std::string& value) const {
    const auto found = distances_.find(value);
    return found == distances_.end() ? std::numeric_limits<int>::max() : found->second;
  }

  int furthest() const {
    int most = 0;
    for (const auto& [name, value] : state_.plan.values) {
      const bool observed = value.kind == ValuePlan::Kind::Observed;
      if (observed && distances_.contains(name)) most = std::max(most, distances_.at(name));
    }
    return most;
  }

  const State& state_;
  std::string own_;  ///< the observer that the job's plan and solution have
  std::map<std::string, int> distances_;
  std::map<std::string, std::map<std::string, QuantParams>> params_;  ///< by observer, then value
  std::vector<ObserverTrial> trials_;
};

evaluation::Evaluator evaluator_of(const State& state,
                                   const std::vector<evaluation::SampleRange>& samples) {
  std::vector<TensorMap> runs;
  for (const evaluation::SampleRange& range : samples) {
    for (TensorMap& run : state.samples.read(range, kRun)) runs.push_back(std::move(run));
  }
  return {state.model, {std::move(runs), state.context}, state.context};
}

void choose_observer(State& state) {
  const QuantConfig& config = state.config;
  if (names_observer(config) || state.plan.values.empty()) return;
  state.report.activation_observer = config.default_activation_observer;
  // Statistics from a file are often taken to try observers by hand: those are given to the letter.
  if (!state.samples.any() || !state.options.statistics.empty()) return;
  std::vector<evaluation::SampleRange> samples = telling_samples(state, kSamples);
  evaluation::Evaluator evaluator = evaluator_of(state, samples);
  if (!evaluator.able()) return;
  if (const std::int64_t values = evaluator.least_values(); values < enough_values()) {
    const std::int64_t most = kSamples * enough_values() / std::max<std::int64_t>(values, 1);
    samples = telling_samples(state, std::min(most, kMostSamples));
    evaluator = evaluator_of(state, samples);
  }
  evaluator.watch_peaks();
  Chooser chooser(state, config, state.context);
  const std::size_t best = chooser.run(evaluator, evaluator.least_values() < enough_values());
  chooser.apply(chooser.trials()[best], state.plan, state.solution);
  QuantizeReport& report = state.report;
  report.activation_observer = chooser.trials()[best].observer;
  report.observer_trials = std::move(chooser.trials());
  for (const evaluation::SampleRange& range : samples) report.observer_samples += range.count;
  state.config.default_activation_observer = report.activation_observer;
  for (const auto& [name, value] : state.plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) {
      state.config.value_observers[name] = value.spec.observer;
    }
  }
}

}  // namespace

Technique observer_choice() {
  return {.info = {.name = "observer_choice",
                   .summary = "try observers of activations where no rule names one",
                   .needs = "samples",
                   .types = "full"},
          .stage = Stage::Parameters,
          .apply = choose_observer};
}

}  // namespace quench::tune
