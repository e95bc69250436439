// SPDX-License-Identifier: Apache-2.0
// Full quantisation in steps: observe while the caller runs batches, then convert.
#include "quench/ptq.h"

#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "base/share.h"
#include "calibrate/collect.h"
#include "calibrate/tally.h"
#include "job/job.h"
#include "job/stored_weights.h"
#include "tune/channel_notes.h"

namespace quench {
namespace {

SessionOptions observing(calibrate::Tally& tally) {
  SessionOptions options;
  options.taps = tally.values();
  options.integer = false;  // values are wanted as the float model has them
  options.on_sample = [&tally](const TapSample& sample) { tally.add(sample); };
  options.on_summary = [&tally](const TapSummary& summary) { tally.add(summary); };
  options.summarized = options.taps.size();
  return options;
}

}  // namespace

/// On the heap, because the session's callback points at the tally.
struct ObservedModel::State {
  State(Model the_model, QuantPlan the_plan, const Context& context)
      : model(std::move(the_model)),
        plan(std::move(the_plan)),
        tally(calibrate::observed_values(plan), context.num_threads()),
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

EngineValues ObservedModel::enter(const TensorMap& batch) const {
  return state_->session.enter(batch);
}

EngineValues ObservedModel::run(const EngineValues& batch) {
  try {
    EngineValues outputs = state_->session.compute(batch);
    state_->tally.keep();
    return outputs;
  } catch (...) {
    state_->tally.discard();
    throw;
  }
}

TensorMap ObservedModel::run(const TensorMap& batch) {
  return state_->session.leave(run(enter(batch)));
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
  QuantPlan plan = job::make_final_plan(prepared, config_);
  calibrate::check_observers(plan, config_.custom_observers);
  const bool any = plan.any_integers();
  if (!any && config_.global.skip) {  // nothing is asked for: the model stays as it is
    prepared = model;
    infer_types(prepared);
    plan = make_plan(prepared, config_);
  } else if (!any && !config_.mixes_types()) {
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
  const QuantSolution solution = calibrate::solve(observed.model(), observed.plan(), statistics,
                                                  config_.custom_observers, 1, shards(context_));
  QuantizeOptions options;
  options.config = config_;
  options.weight.symmetric = true;
  Model quantized = insert_qdq(observed.model(), observed.plan(), solution);
  if (config_.mixes_types()) {
    job::Job job("", options, context_);
    job.model = observed.model();
    job::plan_stored_weights(job);
    job::lower_stored_weights(job, quantized);
  }
  PaddedChannels padded;
  Model result = job::as_written(quantized, options, padded);
  note_channels(result, {.padded = std::move(padded.values), .scaled = {}}, observed.model().graph);
  return result;
}

void PTQ::save_quantized_model(const ObservedModel& observed, const std::string& path,
                               const InputShapes& input_spec) const {
  quench::save_quantized_model(convert(observed), path, input_spec);
}

void save_quantized_model(const Model& model, const std::string& path,
                          const InputShapes& input_spec, const SaveOptions& options) {
  const std::string file = std::filesystem::path(path).has_extension() ? path : path + ".pdmodel";
  Model shaped = model;
  set_input_shapes(shaped, input_spec);
  save(shaped, file, options);
}

}  // namespace quench
