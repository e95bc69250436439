// SPDX-License-Identifier: Apache-2.0
// Decides what becomes of each node, value and weight.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "calibrate/collect.h"
#include "data/cached_source.h"
#include "evaluate/random_inputs.h"
#include "job/job.h"
#include "job/stored_weights.h"
#include "plan/facts.h"
#include "plan/qdq.h"
#include "plan/target.h"
#include "quench/ranks.h"
#include "tune/small_layers.h"

namespace quench::job {
namespace {

/// Samples that validate where none calibrate.
constexpr std::int64_t kMostValidation = 256;

/// Of a model that a tool has made: it has nodes between floats and integers.
bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return node.op_type.ends_with("QuantizeLinear") || node.op_type.ends_with("quantizeLinear") ||
           node.op_type.starts_with("QLinear");
  });
}

/// A model of which nothing would become integer is refused with the reasons, one for each kind of
/// node.
[[noreturn]] void refuse(const Job& job) {
  constexpr std::size_t kMostShown = 8;
  std::map<std::string, std::pair<std::string, std::size_t>> reasons;  // by operator and reason
  for (const Node& node : job.model.graph.nodes) {
    const NodePlan& decision = job.plan.of(job.model.graph, node);
    if (decision.kind != NodePlan::Kind::Float) continue;
    auto& [first, count] = reasons[node.op_type + ": " + decision.reason];
    if (count++ == 0) first = label(job.model.graph, node);
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [reason, which] : reasons) {
    if (++shown > kMostShown) break;
    text += format("\n  {}{}: {}", which.first,
                   which.second > 1 ? format(" and {} more", which.second - 1) : "",
                   reason.substr(reason.find(": ") + 2));
  }
  if (shown > kMostShown) {
    const std::size_t more = reasons.size() - kMostShown;
    text += format("\n  and {} more reason{}", more, more == 1 ? "" : "s");
  }
  if (text.empty()) text = " it has no node that computes";
  if (is_quantized(job.model.graph)) {
    text += format(
        "\n  It is quantised already: take its float model, or `quench retarget ... "
        "--target {}` to have it run on integers there",
        job.options.config.target);
  }
  fail(ErrorKind::Unsupported, "no layer of '{}' can be quantised for target '{}':{}",
       job.model_path, job.options.config.target, text);
}

/// There are integer operators of 8 bits only: with more the form would change nothing.
void check_form(const QuantizeOptions& options) {
  if (!options.qoperator) return;
  const QuantRule& rule = options.config.global;
  const int bits = std::max(rule.activation_bits.value_or(8), rule.weight_bits.value_or(8));
  if (bits <= 8) return;
  fail(ErrorKind::Usage,
       "--format qoperator writes operators of 8 bits, but {} bits are asked for; take --format "
       "qdq, or 8 bits and fewer",
       bits);
}

void open_samples(Job& job) {
  const DataOptions& data = job.options.data;
  if (data.path.empty()) return;
  const std::vector<Value> inputs = required_inputs(job.model.graph);
  auto source = std::make_unique<CachedSource>(open_data(data, inputs, job.context));
  const bool calibrates = job.is_full() || wants_gptq(job);
  job.samples =
      evaluation::Samples(std::move(source), job.model.graph,
                          calibrates ? job.options.held_out : kMostValidation, calibrates);
  if (calibrates && job.samples.calibration().count == 0) {
    fail(ErrorKind::BadData, "{} holds {} samples, but '{}' takes {} a run", data.path,
         job.samples.source().size(), job.model_path, job.samples.run_size());
  }
  if (job.context.ranks) {
    job.context.ranks->agree("the data set", evaluation::identity_of(job.samples.source()));
  }
}

void plan_static(Job& job) {
  check_form(job.options);
  job.config = without_small_layers(job.model.graph, job.options);
  job.plan = make_final_plan(job.model, job.config);
  // A wrong name is reported before the data are read.
  calibrate::check_observers(job.plan, job.config.custom_observers);
}

}  // namespace

QuantPlan make_final_plan(Model& model, const QuantConfig& config) {
  QuantPlan plan = make_plan(model, config);
  if (needed_opset(plan) <= model.opset()) return plan;
  lift_opset(model, needed_opset(plan));
  infer_types(model);
  return make_plan(model, config);
}

void plan(Job& job) {
  if (job.is_full()) plan_static(job);
  plan_stored_weights(job);
  if (job.is_full() && !job.plan.any_integers() && job.stored.empty()) refuse(job);
  open_samples(job);
}

void note_decisions(const Model& prepared, const QuantPlan& plan, const Model& written,
                    QuantizeReport& report) {
  std::map<std::string, std::string> reasons;
  for (const Node& node : prepared.graph.nodes) {
    const NodePlan& decision = plan.of(prepared.graph, node);
    if (decision.kind != NodePlan::Kind::Float) continue;
    reasons.emplace(plan::key_of(prepared.graph, node), decision.reason);
  }
  const TargetInfo& target = find_target(plan.target);
  const std::vector<LintLine> lines = lint(written, plan.target);
  auto line = lines.begin();
  for (const Node& node : written.graph.nodes) {
    if (plan::is_q(&node) || plan::is_dq(&node)) continue;
    const LintLine& found = *line++;
    const TargetOp* op = plan::find_op(target, node.op_type);
    const bool moves = op != nullptr && op->kind == NodePlan::Kind::PassThrough;
    if (found.integer) ++(moves ? report.pass_through_nodes : report.integer_nodes);
    if (found.integer) continue;
    const auto planned = reasons.find(found.node);
    report.float_layers.push_back(
        {.node = plan::key_of(written.graph, node),
         .op_type = node.op_type,
         .reason = planned == reasons.end() ? found.reason : planned->second});
  }
}

}  // namespace quench::job
