// SPDX-License-Identifier: Apache-2.0
// Where no rule names an observer of activations, samples choose.
#include <algorithm>
#include <limits>

#include "calibrate/collect.h"
#include "plan/layers_behind.h"
#include "tune/technique.h"
#include "tune/telling_samples.h"

namespace quench::tune {
namespace {

using evaluation::worst_sqnr;

/// Clips nothing that was seen: what every other choice is held against, output by output.
constexpr const char* kWhole = "min_max";
/// The least error value by value is not always the least error in the outputs: behind a bounded
/// activation it keeps peaks that hardly matter (MobileNetV2: 2 dB). The mean of the samples'
/// ranges cuts them.
constexpr const char* kCutting = "avg";
/// Samples are few: a difference in dB below this is noise.
constexpr double kWorth = 0.25;
/// The most, in dB, that an output may lose beside min_max. On other samples it may be as much
/// again.
constexpr double kMayLose = 0.5;
constexpr std::int64_t kRun = 4;  ///< samples

bool names_observer(const QuantConfig& config) {
  const auto named = [](const auto& entry) { return entry.second.activation_observer.has_value(); };
  return config.global.activation_observer.has_value() || !config.value_observers.empty() ||
         std::ranges::any_of(config.by_layer, named) ||
         std::ranges::any_of(config.by_name, named) || std::ranges::any_of(config.by_type, named);
}

/// How near an output comes to float in all its values, or in those far from the usual if they are
/// worse. A detector's finds are few, and all that matters.
double nearness(const OutputScores& output) {
  const double sqnr = output.scores.at("sqnr");
  const auto peak = output.scores.find("peak_sqnr");
  return peak == output.scores.end() ? sqnr : std::min(sqnr, peak->second);
}

/// Whether every output is about as near as without clipping, by both measures.
bool admissible(const ObserverTrial& trial, const ObserverTrial& whole) {
  for (std::size_t i = 0; i < whole.outputs.size(); ++i) {
    const OutputScores& here = trial.outputs[i];
    const OutputScores& there = whole.outputs[i];
    if (here.scores.at("sqnr") < there.scores.at("sqnr") - kMayLose) return false;
    if (nearness(here) < nearness(there) - kMayLose) return false;
  }
  return true;
}

/// Of the trials, the last of which clips nothing, the first that is as good as the best.
std::size_t pick(const std::vector<ObserverTrial>& trials) {
  const ObserverTrial& whole = trials.back();
  double best = worst_sqnr(whole.outputs);
  for (const ObserverTrial& trial : trials) {
    if (admissible(trial, whole)) best = std::max(best, worst_sqnr(trial.outputs));
  }
  const auto good = [&](const ObserverTrial& trial) {
    return admissible(trial, whole) && !(worst_sqnr(trial.outputs) < best - kWorth);
  };
  return static_cast<std::size_t>(std::ranges::find_if(trials, good) - trials.begin());
}

/// Tries observers on a job whose own solution has the default one.
class Chooser {
 public:
  Chooser(const State& state, const QuantConfig& config, const Context& context)
      : state_(state),
        own_(config.default_activation_observer),
        distances_(plan::layers_behind(state.model.graph)) {
    grids_[own_] = state.solution.values;
    for (const std::string observer : {kCutting, kWhole}) {
      if (grids_.contains(observer)) continue;
      QuantPlan plan;
      plan.values = state.plan.values;
      for (auto& [name, value] : plan.values) value.spec.observer = observer;
      grids_[observer] = calibrate::solve(state.model, plan, state.statistics,
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
  std::size_t run(const evaluation::Evaluator& judge) {
    for (ObserverTrial& trial : trials_) {
      QuantPlan plan = state_.plan;
      QuantSolution solution = state_.solution;
      apply(trial, plan, solution);
      trial.outputs = judge.scores(insert_qdq(state_.model, plan, solution));
    }
    const std::size_t best = pick(trials_);
    trials_[best].chosen = true;
    return best;
  }

  /// Changes observers and grids to those of a trial.
  void apply(const ObserverTrial& trial, QuantPlan& plan, QuantSolution& solution) const {
    for (auto& [name, value] : plan.values) {
      const bool shared = value.kind == ValuePlan::Kind::SharedWith;
      const bool whole = distance(shared ? value.source : name) <= trial.unclipped_layers;
      const std::string observer = whole ? kWhole : trial.observer;
      if (observer == own_) continue;
      value.spec.observer = observer;
      const auto grid = grids_.at(observer).find(name);
      if (grid != grids_.at(observer).end()) solution.values[name] = grid->second;
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
  std::map<std::string, std::map<std::string, QuantParams>> grids_;  ///< by observer, then value
  std::vector<ObserverTrial> trials_;
};

void choose_observer(State& state) {
  const QuantConfig& config = state.config;
  if (names_observer(config) || state.plan.values.empty()) return;
  state.report.activation_observer = config.default_activation_observer;
  // Statistics from a file are often taken to try observers by hand: those are given to the letter.
  if (!state.samples.any() || !state.options.statistics.empty()) return;
  const std::vector<evaluation::SampleRange> samples = telling_samples(state);
  std::vector<TensorMap> runs;
  for (const evaluation::SampleRange& range : samples) {
    for (TensorMap& run : state.samples.read(range, kRun)) runs.push_back(std::move(run));
  }
  evaluation::Evaluator evaluator(state.model, {std::move(runs), state.context}, state.context);
  if (!evaluator.able()) return;
  evaluator.watch_peaks();
  Chooser chooser(state, config, state.context);
  const std::size_t best = chooser.run(evaluator);
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
  return {.name = "observer_choice",
          .summary = "try observers of activations where no rule names one",
          .stage = Stage::Parameters,
          .needs = "samples",
          .types = "full",
          .apply = choose_observer};
}

}  // namespace quench::tune
