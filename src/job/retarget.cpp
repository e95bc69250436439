// SPDX-License-Identifier: Apache-2.0
// The steps of a quantisation, with the scales of another tool in place of statistics.
#include "quench/retarget.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "calibrate/collect.h"
#include "formats/disk_bytes.h"
#include "formats/registry.h"
#include "job/job.h"
#include "job/job_files.h"
#include "plan/facts.h"
#include "plan/target.h"
#include "retarget/edges.h"
#include "retarget/generated_runs.h"
#include "retarget/losses.h"
#include "retarget/params_of.h"
#include "retarget/solve.h"

namespace quench {
namespace job {
namespace {

constexpr int kMostBits = 8;

/// One retargeting: the job, and what it was taken from.
struct Retargeting {
  Retargeting(const std::string& model_path, const QuantizeOptions& options, const Context& context)
      : job(model_path, options, context) {}

  Job job;
  Model original;
  retargeting::Raised raised;
  std::map<std::string, std::string> reasons;  ///< why nodes stay in float, by their names
};

void expect_bits(const retargeting::Raised& raised, std::string_view target) {
  const auto check = [&](const std::string& name, const QuantParams& params) {
    if (params.spec.bits <= kMostBits) return;
    fail(ErrorKind::Unsupported,
         "'{}' is quantised to {} bits, and target '{}' computes with {}; quantise the float model "
         "for it with `quench quantize`",
         name, params.spec.bits, target, kMostBits);
  };
  for (const auto& [name, params] : raised.values) check(name, params);
  for (const auto& [name, params] : raised.weights) check(name, params);
}

/// Whether there is anything to take over, with data or without.
void expect_scales(const retargeting::Raised& raised, bool data) {
  if (!raised.values.empty() || (data && !raised.weights.empty())) return;
  if (raised.weights.empty()) {
    fail(ErrorKind::Unsupported,
         "no activation of it has a scale: it is not quantised, or in a way that is not known; "
         "`quench quantize` quantises float models");
  }
  fail(ErrorKind::Unsupported,
       "{}, so there are no scales to take over; --data calibrates them, and `quench quantize` "
       "gives the float model some",
       raised.dynamic > 0 ? "its activations are quantised while it runs"
                          : "no activation of it has a scale, its weights alone are quantised");
}

void keep_in_float(Retargeting& work, const Node& node, std::string reason) {
  const std::string key = plan::key_of(work.job.model.graph, node);
  if (work.reasons.emplace(key, std::move(reason)).second) {
    work.job.options.config.skip_quant_node.push_back(key);
  }
}

/// Whoever quantised the model may have had a reason to leave a layer in float.
void keep_float_layers(Retargeting& work) {
  const Model& model = work.job.model;
  for (const Node& node : model.graph.nodes) {
    if (!plan::is_layer(node) || model.graph.constant(node.input(1)) == nullptr) continue;
    const bool known = work.raised.weights.contains(model.graph[node.inputs[1]].name);
    if (!known) keep_in_float(work, node, "its weight was not quantised");
  }
}

/// Nodes that cannot run on integers without the scale of a value.
void keep_around(Retargeting& work, const QuantPlan& plan, const std::string& value) {
  const Graph& graph = work.job.model.graph;
  const TargetInfo& target = find_target(plan.target);
  const ValueId id = graph.find(value);
  const std::string reason =
      format("nothing tells the range of '{}'; --data would calibrate it", value);
  for (const Node& node : graph.nodes) {
    const NodePlan& decision = plan.of(graph, node);
    if (decision.kind == NodePlan::Kind::Float || !decision.absorbed_by.empty()) continue;
    const auto inputs = plan::data_inputs(node);
    const bool reads =
        std::ranges::any_of(inputs, [&](std::size_t i) { return node.inputs[i] == id; });
    const TargetOp* op = plan::find_op(target, node.op_type);
    const bool needs = target.quantize_outputs && op != nullptr && !op->float_output;
    const bool makes = plan.result_of(output_name(graph, node)) == value ||
                       std::ranges::count(node.outputs, id) != 0;
    if (reads || (makes && needs)) keep_in_float(work, node, reason);
  }
}

/// Returns to float what lacks a range, until all that is left has one.
void keep_unknown(Retargeting& work) {
  for (;;) {
    const QuantPlan plan = make_final_plan(work.job.model, work.job.options.config);
    const auto unknown = retargeting::Solver(work.job.model, plan, work.raised).unknown();
    if (unknown.empty()) return;
    const std::size_t before = work.reasons.size();
    for (const std::string& value : unknown) keep_around(work, plan, value);
    if (work.reasons.size() == before) {
      fail(ErrorKind::Internal, "no node needs the scale of '{}'", unknown.front());
    }
  }
}

void take_apart(Retargeting& work, RetargetReport& report) {
  Job& job = work.job;
  Model read = load(job.model_path);
  report.bytes_before = bytes_on_disk(job.model_path, read);
  set_input_shapes(read, job.options.input_shapes);
  infer_and_warn(read, job.context);
  work.original = read;
  try {
    work.raised = retargeting::raise(std::move(read));
    expect_scales(work.raised, !job.options.data.path.empty());
  } catch (const Error& error) {
    throw Error(error.kind(), format("{}: {}", job.model_path, error.what()));
  }
  expect_bits(work.raised, job.options.config.target);
  job.original = work.raised.model;
  job.model = prepare_for(work.raised.model, QuantType::Full);
  expect_out_fits(job);
}

void decide(Retargeting& work) {
  keep_float_layers(work);
  if (work.job.options.data.path.empty()) keep_unknown(work);
  plan(work.job);
}

/// Only what the model itself does not tell.
void find_scales(Retargeting& work, RetargetReport& report) {
  Job& job = work.job;
  const retargeting::Solver solver(job.model, job.plan, work.raised);
  const std::vector<std::string> values = solver.to_observe();
  if (job.samples.any() && !values.empty()) {
    const evaluation::SampleRange range = job.samples.calibration();
    job.statistics =
        calibrate::collect(job.model, values, job.samples.source(),
                           {.batch = job.options.batch, .count = range.count}, job.context);
    report.calibration_samples = range.count;
  }
  for (const std::string& name : calibrate::observed_values(job.plan)) {
    if (job.statistics.contains(name)) {
      ++report.calibrated_scales;
    } else if (solver.source(name) == retargeting::Source::Neighbours) {
      ++report.neighbour_scales;
    }
  }
  job.solution = solver.solve(job.statistics);
  legalize(job.model, job.plan, job.solution);
}

void put_together(Retargeting& work, RetargetReport& report) {
  Job& job = work.job;
  Model model = insert_qdq(job.model, job.plan, job.solution);
  report.activations =
      static_cast<std::int64_t>(retargeting::drop_idle_activations(model, work.raised.activations));
  retargeting::restore_edges(model, work.raised.edges);
  PaddedChannels padded;
  job.written = as_written(model, job.options, padded);
  QuantizeReport decisions;
  note_decisions(job.model, job.plan, job.written, decisions);
  report.after.integers = decisions.integer_nodes + decisions.pass_through_nodes;
  report.after.nodes =
      report.after.integers + static_cast<std::int64_t>(decisions.float_layers.size());
  for (FloatLayer& layer : decisions.float_layers) {
    const auto known = work.reasons.find(layer.node);
    if (known != work.reasons.end()) layer.reason = known->second;
  }
  report.float_layers = std::move(decisions.float_layers);
  retargeting::note_losses(job.model, job.plan, job.solution, work.raised, report);
}

void hold_against(Retargeting& work, const RetargetOptions& options, RetargetReport& report) {
  Job& job = work.job;
  const auto& edges = work.raised.edges;
  const Model reference = retargeting::with_float_edges(work.original, edges);
  std::vector<TensorMap> runs;
  if (job.samples.any()) {
    const evaluation::SampleRange range = job.samples.validation();
    runs = job.samples.read(range, options.batch);
    report.samples = range.count;
    report.generated = false;
  } else {
    runs = retargeting::generated_runs(reference, work.raised, options, job.context.seed, report);
  }
  if (runs.empty()) return;
  const evaluation::Evaluator evaluator(reference, {std::move(runs), job.context}, job.context);
  report.outputs =
      evaluator.scores(retargeting::with_float_edges(as_read(job.written, job.out_path), edges));
}

void note_original(const Retargeting& work, RetargetReport& report) {
  for (const LintLine& line : lint(work.original, report.target)) {
    ++report.before.nodes;
    if (line.integer) ++report.before.integers;
  }
  if (work.raised.requantised > 0) {
    report.warnings.push_back(
        format("{} values had several scales, for several readers; each keeps its first",
               work.raised.requantised));
  }
}

void advise(const Retargeting& work, RetargetReport& report) {
  const auto by_channel = std::ranges::count_if(
      work.raised.values, [](const auto& each) { return each.second.spec.axis >= 0; });
  if (by_channel > 0) {
    report.warnings.push_back(
        format("{} activations had a scale for each channel, which target '{}' has not: their "
               "steps are wider now; hold the result against samples with --data",
               by_channel, report.target));
  }
  if (report.after.integers * report.before.nodes < report.before.integers * report.after.nodes) {
    report.warnings.push_back(
        format("the share of nodes on integers fell: the model suited target '{}' as it was",
               report.target));
  }
}

/// All steps; the result is in `work.job.written`.
void run_all(Retargeting& work, const RetargetOptions& options, RetargetReport& report) {
  take_apart(work, report);
  note_original(work, report);
  decide(work);
  find_scales(work, report);
  put_together(work, report);
  hold_against(work, options, report);
  advise(work, report);
}

}  // namespace

}  // namespace job

RetargetReport retarget(const std::string& model_path, const std::string& out_path,
                        const RetargetOptions& options, const Context& context, Outputs& outputs) {
  const auto began = std::chrono::steady_clock::now();
  QuantizeOptions how;
  how.config.target = find_target(options.target).name;
  how.data = options.data;
  how.batch = options.batch;
  how.input_shapes = options.shapes;
  how.qoperator = options.qoperator;
  how.store_settings = false;
  reads_job(outputs, model_path, how);
  writes_model(outputs, out_path, "the retargeted model");
  job::Retargeting work(model_path, how, context);
  work.job.out_path = out_path;
  RetargetReport report;
  report.target = how.config.target;
  job::run_all(work, options, report);
  report.bytes_after = static_cast<std::int64_t>(save(work.job.written, out_path, {}, outputs));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

RetargetReport retarget(const std::string& model_path, const std::string& out_path,
                        const RetargetOptions& options, const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return retarget(model_path, out_path, options, context, outputs); });
}

}  // namespace quench
