// SPDX-License-Identifier: Apache-2.0
// Full quantisation in steps: observe while the caller runs batches, then convert.
#include "quench/ptq.h"

#include <array>

#include "base/format.h"
#include "base/nearest.h"
#include "calibrate/collect.h"
#include "calibrate/tally.h"
#include "pipeline/quantize_steps.h"

namespace quench {
namespace {

constexpr std::string_view kPerChannel = "channel_wise_abs_max";
constexpr std::string_view kWhole = "abs_max";

SessionOptions observing(calibrate::Tally& tally) {
  SessionOptions options;
  options.taps = tally.values();
  options.integer = false;  // values are wanted as the float model has them
  options.on_sample = [&tally](const TapSample& sample) { tally.add(sample); };
  return options;
}

}  // namespace

/// On the heap, because the session's callback points at the tally.
struct ObservedModel::State {
  State(Model the_model, QuantPlan the_plan, const Context& context)
      : model(std::move(the_model)),
        plan(std::move(the_plan)),
        tally(observed_values(plan), context.num_threads()),
        session(model, observing(tally), context) {}

  Model model;
  QuantPlan plan;
  calibrate::Tally tally;
  Session session;
};

ObservedModel::ObservedModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
ObservedModel::~ObservedModel() = default;
ObservedModel::ObservedModel(ObservedModel&&) noexcept = default;
ObservedModel& ObservedModel::operator=(ObservedModel&&) noexcept = default;

TensorMap ObservedModel::run(const TensorMap& batch) {
  try {
    TensorMap outputs = state_->session.run(batch);
    state_->tally.keep();
    return outputs;
  } catch (...) {
    state_->tally.discard();
    throw;
  }
}

void ObservedModel::merge(const StatisticMap& statistics) { state_->tally.merge(statistics); }
StatisticMap ObservedModel::statistics() const { return state_->tally.statistics(); }
const Model& ObservedModel::model() const noexcept { return state_->model; }
const QuantPlan& ObservedModel::plan() const noexcept { return state_->plan; }
const std::vector<Value>& ObservedModel::inputs() const noexcept {
  return state_->session.inputs();
}

PTQ::PTQ(QuantConfig config, Context context)
    : config_(std::move(config)), context_(std::move(context)) {}

ObservedModel PTQ::quantize(const Model& model, const FuseOptions& fuse) const {
  Model prepared = prepare_for_quantization(model, fuse);
  QuantPlan plan = make_final_plan(prepared, config_);
  calibrate::check_observers(plan, config_.custom_observers);
  QuantizeReport decisions;
  note_decisions(prepared, plan, decisions);
  if (decisions.integer_nodes == 0) {
    fail(ErrorKind::Unsupported, "no layer of the model can be quantised for target '{}'",
         config_.target);
  }
  return ObservedModel(
      std::make_unique<ObservedModel::State>(std::move(prepared), std::move(plan), context_));
}

Model PTQ::convert(const ObservedModel& observed) const {
  const StatisticMap statistics = observed.statistics();
  for (const auto& [name, statistic] : statistics) {
    if (statistic.samples > 0) continue;
    fail(ErrorKind::Usage,
         "'{}' was never observed: call run() on batches of calibration data before convert()",
         name);
  }
  const QuantSolution solution =
      calibrate::solve(observed.model(), observed.plan(), statistics, config_.custom_observers);
  Model result = insert_qdq(observed.model(), observed.plan(), solution);
  pad_channels(result, find_target(config_.target).depthwise_channels);
  return result;
}

KLQuantizer::KLQuantizer(int bits, int num_bins)
    : LegacyQuantizer{.observer = "KL", .quant_bits = bits, .bins = num_bins} {}
HistQuantizer::HistQuantizer(int bits, int num_bins, double percent)
    : LegacyQuantizer{
          .observer = "hist", .quant_bits = bits, .bins = num_bins, .hist_percent = percent} {}
AbsmaxQuantizer::AbsmaxQuantizer(int bits)
    : LegacyQuantizer{.observer = std::string(kWhole), .quant_bits = bits} {}
PerChannelAbsmaxQuantizer::PerChannelAbsmaxQuantizer(int bits)
    : LegacyQuantizer{.observer = std::string(kPerChannel), .quant_bits = bits} {}

LegacyQuantizer legacy_quantizer(std::string_view name) {
  const std::array<std::pair<std::string, LegacyQuantizer>, 4> all = {
      {{"KLQuantizer", KLQuantizer()},
       {"HistQuantizer", HistQuantizer()},
       {"AbsmaxQuantizer", AbsmaxQuantizer()},
       {"PerChannelAbsmaxQuantizer", PerChannelAbsmaxQuantizer()}}};
  std::vector<std::string> names;
  for (const auto& [each, quantizer] : all) {
    if (each == name) return quantizer;
    names.push_back(each);
  }
  fail(ErrorKind::Usage, "there is no quantizer '{}'{}; there are {}", name,
       did_you_mean(name, names), fmt::join(names, ", "));
}

QuantConfig legacy_config(const LegacyQuantizer& activation, const LegacyQuantizer& weight) {
  if (activation.observer == kPerChannel) {
    fail(ErrorKind::Usage,
         "PerChannelAbsmaxQuantizer is for weights; for activations take KLQuantizer, "
         "HistQuantizer or AbsmaxQuantizer");
  }
  if (weight.observer != kPerChannel && weight.observer != kWhole) {
    fail(ErrorKind::Usage,
         "a quantizer by '{}' is for activations; for weights take PerChannelAbsmaxQuantizer or "
         "AbsmaxQuantizer",
         weight.observer);
  }
  QuantConfig config;
  config.global.activation_observer = activation.observer;
  config.global.activation_bits = activation.quant_bits;
  config.global.weight_observer = weight.observer;
  config.global.weight_bits = weight.quant_bits;
  config.hist_percent = activation.hist_percent;
  config.bins = activation.bins;
  return config;
}

}  // namespace quench
