// SPDX-License-Identifier: Apache-2.0
// Equalisation of channels, tried on a few samples.
#include <algorithm>
#include <optional>

#include "calibrate/collect.h"
#include "plan/facts.h"
#include "tune/bias_correction.h"
#include "tune/equalize.h"
#include "tune/small_layers.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

/// Equalisation must leave float outputs alone: their SQNR, in dB.
constexpr double kSameFloat = 60;
/// Samples that a trial reads.
constexpr std::int64_t kTrialSamples = 16;
/// Those of one run: more take more memory, and hardly less time.
constexpr std::int64_t kTrialRun = 1;

using Runs = std::vector<TensorMap>;

evaluation::SampleRange trial_samples(const State& state) {
  return state.samples.first(kTrialSamples);
}

/// A model calibrated with a few samples, and how near its worst output comes to float.
class Trial {
 public:
  Trial(const Model& model, const QuantPlan& plan, const State& state,
        const evaluation::Evaluator& evaluator)
      : model_(model),
        plan_(plan),
        state_(state),
        evaluator_(evaluator),
        pass_(pass_first(model, plan, calibrate::observed_values(plan),
                         {.source = state.samples.source(),
                          .count = trial_samples(state).count,
                          .batch = state.options.batch},
                         state.context)),
        solution_(calibrate::solve(model, plan, pass_.statistics, state.config.custom_observers)),
        plain_(evaluator.sqnr(insert_qdq(model, plan, solution_))) {}

  FirstPass take_pass() { return std::move(pass_); }
  /// SQNR in dB with the biases of the float model.
  double plain() const { return plain_; }
  /// Bias correction mends part of what equalisation does: they are tried together.
  double best(const Runs& runs) const {
    if (!state_.options.bias_correction) return plain_;
    Model biased = model_;
    correct_biases(biased, plan_, solution_, {runs, pass_.means}, state_.context);
    return std::max(plain_, evaluator_.sqnr(insert_qdq(biased, plan_, solution_)));
  }

 private:
  const Model& model_;
  const QuantPlan& plan_;
  const State& state_;
  const evaluation::Evaluator& evaluator_;
  FirstPass pass_;
  QuantSolution solution_;
  double plain_;
};

/// Whether a scaled model comes nearer to float; the pass of the one that does is kept.
bool is_better(const Model& scaled, const QuantPlan& plan, const Runs& runs,
               const evaluation::Evaluator& evaluator, State& state) {
  Trial with(scaled, plan, state, evaluator);
  const double reached = with.best(runs);
  Trial without(state.model, state.plan, state, evaluator);
  // Correction takes most of a trial's time, and is not asked where it would change nothing.
  const bool better = reached > without.plain() && reached > without.best(runs);
  state.first = better ? with.take_pass() : without.take_pass();
  return better;
}

/// Whether weights around some values gain much by it: those with one scale, and those of
/// transposed depthwise convolutions, whose scales go with their channels. Elsewhere it gains
/// little: measured, a third of a dB on MobileNetV2.
bool worth_trying(const Model& model, const QuantPlan& plan) {
  return std::ranges::any_of(plan.weights, [&](const WeightPlan& each) {
    if (each.input != 1) return false;
    const Node& node = node_called(model.graph, each.node);
    return each.spec.axis < 0 ||
           plan::depthwise_axis(node, *model.graph.constant(node.inputs[1])) >= 0;
  });
}

void equalize_channels(State& state) {
  const QuantizeOptions& options = state.options;
  // Statistics from a file are those of the model as it is.
  if (!state.samples.any() || !options.statistics.empty()) return;
  if (options.equalization == Equalization::Never || state.plan.weights.empty()) return;
  const bool asked = options.equalization == Equalization::Always;
  const bool wanted = asked || worth_trying(state.model, state.plan);
  if (!wanted && !has_gates(state.model)) return;
  const Runs runs = state.samples.read(trial_samples(state), kTrialRun);
  // Where no samples are held out, those that both sides are calibrated with.
  std::optional<evaluation::Evaluator> own;
  if (!state.validation.able()) {
    own.emplace(state.model, evaluation::EvalData(runs, state.context), state.context);
  }
  const evaluation::Evaluator& evaluator = own ? *own : state.validation;
  if (!evaluator.able()) return;
  Model scaled = state.model;
  Equalized done = equalize(scaled, state.plan, runs, state.context);
  if (done.scaled.empty()) return;
  if (!wanted && done.gates == 0) return;
  if (evaluator.sqnr(scaled) < kSameFloat) return;
  QuantConfig config = without_small_layers(scaled.graph, options);
  config.skip_quant_node.insert(config.skip_quant_node.end(), done.float_nodes.begin(),
                                done.float_nodes.end());
  QuantPlan plan = make_plan(scaled, config);
  for (const Node& node : scaled.graph.nodes) {
    if (std::ranges::find(done.float_nodes, node.name) == done.float_nodes.end()) continue;
    plan.nodes.at(output_name(scaled.graph, node)).reason =
        "it undoes equalisation in front of a gate that reads float";
  }
  if (!asked && !is_better(scaled, plan, runs, evaluator, state)) return;
  state.model = std::move(scaled);
  state.plan = std::move(plan);
  state.config = std::move(config);
  state.report.equalized_groups = done.scaled.size();
  state.channels.scaled = std::move(done.scaled);
}

}  // namespace

Technique equalization() {
  return {.info = {.name = "equalization",
                   .summary = "scale channels between layers so that they share a scale better",
                   .needs = "samples",
                   .types = "full"},
          .stage = Stage::Model,
          .apply = equalize_channels};
}

}  // namespace quench::tune
