// SPDX-License-Identifier: Apache-2.0
// Full quantisation, step by step.
#include "quench/quantize.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/format.h"
#include "calibrate/collect.h"
#include "formats/registry.h"
#include "options/settings.h"
#include "pipeline/advice.h"
#include "pipeline/batchnorm_check.h"
#include "pipeline/debug_info.h"
#include "pipeline/disk_bytes.h"
#include "pipeline/job_files.h"
#include "pipeline/job_steps.h"
#include "pipeline/layer_scores.h"
#include "pipeline/memory.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/tuning.h"
#include "pipeline/weight.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

/// A model of which nothing would become integer is refused with the reasons, one for each kind of
/// node.
void check_anything_to_do(const Job& job, const std::string& path, const std::string& target) {
  constexpr std::size_t kMostShown = 8;
  std::map<std::string, std::pair<std::string, std::size_t>> reasons;  // by operator and reason
  for (std::size_t i = 0; i < job.plan.nodes.size(); ++i) {
    const NodePlan& decision = job.plan.nodes[i];
    if (decision.kind == NodePlan::Kind::Integer) return;
    if (decision.kind != NodePlan::Kind::Float) continue;
    const Node& node = job.model.graph.nodes[i];
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
  if (shown > kMostShown) text += format("\n  and {} more reasons", reasons.size() - kMostShown);
  if (text.empty()) text = " it has no node that computes";
  fail(ErrorKind::Unsupported, "no layer of '{}' can be quantised for target '{}':{}", path, target,
       text);
}

/// There are integer operators of 8 bits only: with wider grids the form would change nothing.
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

/// What can be said of the data and the model before anything is chosen.
void advise_on_data(Job& job, const Judge& judge, const Context& context, QuantizeReport& report) {
  warn_of_values(job.statistics, report);
  warn_of_dead_channels(job.model, job.plan, report);
  warn_of_shared_grids(job.model, job.plan, report);
  if (!job.source) return;
  warn_of_few_samples(job.parts.calibrate, report);
  warn_of_unlike_data(job.unfolded, *job.source, job.parts.calibrate, context, report);
  for (const TensorMap& inputs : judge.runs()) {
    const std::size_t before = report.warnings.size();
    warn_of_unseen_inputs(inputs, job.statistics, report);
    if (report.warnings.size() > before) break;  // one run tells as much as all
  }
}

/// The file stores a grid of few bits in whole bytes.
GridBits bits_of(const Job& job) {
  GridBits bits;
  for (const auto& [name, grid] : job.solution.values) bits[name] = grid.spec.bits;
  for (const auto& [place, grid] : job.solution.weights) {
    const Node& node = job.model.graph.nodes[static_cast<std::size_t>(place.first)];
    bits[job.model.graph[node.inputs[place.second]].name] = grid.spec.bits;
  }
  return bits;
}

QuantizeReport quantize_fully(const std::string& model_path, const std::string& out_path,
                              const QuantizeOptions& options, const Context& context,
                              Outputs& outputs, Model& written) {
  const auto began = Clock::now();
  const PeakMemory memory;
  QuantizeReport report;
  check_form(options);
  Job job = start_job(model_path, options, context);
  report.warnings = options.notes;
  report.bytes_before = bytes_on_disk(model_path, job.unfolded);
  check_anything_to_do(job, model_path, options.config.target);
  const DebugInfoOptions debug = start_debug_info(options);
  warm_up(job, options, context);
  const Judge judge(job, context);
  equalize_channels(job, judge, options, context, report);
  note_decisions(job.model, job.plan, report);
  gather(job, options, context);
  advise_on_data(job, judge, context, report);
  job.solution = calibrate::solve(job.model, job.plan, job.statistics,
                                  options.config.custom_observers, context.num_threads());
  choose_observer(job, options, context, report);
  // From here on the grids are those that are written.
  report.coarser_layers = settle(job.model, job.plan, job.solution);
  note_observers(job.plan, report);
  Model quantised = with_biases(job, judge, options, context, report);
  if (judge.able()) {
    report.layers = score_layers(job, quantised, context);
  }
  warn_of_clipping(job.statistics, job.solution, report);
  warn_of_layers(report);
  const Model simulated = quantised;
  pad_channels(quantised, find_target(options.config.target).depthwise_channels);
  if (options.qoperator) quantised = to_qoperator(quantised);
  note_origin(quantised, options, job.origin);
  report.bytes_after = static_cast<std::int64_t>(save(quantised, out_path, {}, outputs));
  if (!debug.folder.empty()) {
    write_debug_tables(job.model, simulated, debug, context, outputs, bits_of(job));
  }
  for (const auto& [name, statistic] : job.statistics) {
    report.calibration_samples = std::max(report.calibration_samples, statistic.samples);
  }
  report.judged_samples = job.parts.judge;
  written = std::move(quantised);
  report.peak_memory_mb = memory.peak_mb();
  report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return report;
}

/// ONNX has integers of 4, 8 and 16 bits only: says so where weights need much less.
void warn_of_wasted_bits(const std::string& out_path, QuantizeReport& report) {
  constexpr double kWorthSaying = 1.05;
  double elements = 0;
  double needed = 0;
  double stored = 0;
  for (const WeightChoice& choice : report.weights) {
    elements += static_cast<double>(choice.elements);
    needed += static_cast<double>(choice.elements) * choice.bits;
    stored += 8 * static_cast<double>(choice.bytes);
  }
  if (stored <= kWorthSaying * needed || elements == 0) return;
  report.warnings.push_back(format(
      "{} takes {:.1f} bits a weight for {:.1f}, because ONNX has integers of 4, 8 and 16 bits "
      "only; a result that ends in {}, or `quench pack`, takes no more than there are",
      out_path, stored / elements, needed / elements, packed_format().extension));
}

/// Runs a job that changes its model in place, then compares the two models.
QuantizeReport with_tables(decltype(quantize_to) job, const std::string& model_path,
                           const std::string& out_path, const QuantizeOptions& options,
                           const Context& context, Outputs& outputs, Model& written) {
  const DebugInfoOptions debug = start_debug_info(options);
  QuantizeReport report = job(model_path, out_path, options, context, outputs, written);
  if (!debug.folder.empty()) {
    write_debug_tables(load_for_tables(model_path, debug), written, debug, context, outputs);
  }
  return report;
}

}  // namespace

QuantizeReport quantize_to(const std::string& model_path, const std::string& out_path,
                           const QuantizeOptions& given, const Context& context, Outputs& outputs,
                           Model& written) {
  reads_job(outputs, model_path, given);
  writes_model(outputs, out_path, "the quantised model");
  QuantizeOptions options = given;
  const bool packed = out_path.ends_with(packed_format().extension);
  if (!packed) {
    options.notes.insert(options.notes.end(), given.notes_unless_packed.begin(),
                         given.notes_unless_packed.end());
  }
  QuantizeReport report;
  switch (options.type) {
    case QuantType::Weight:
      report =
          with_tables(quantize_weights, model_path, out_path, options, context, outputs, written);
      if (options.weight.bits == 0 && !packed) warn_of_wasted_bits(out_path, report);
      break;
    case QuantType::Dynamic:
      report =
          with_tables(quantize_dynamic, model_path, out_path, options, context, outputs, written);
      break;
    case QuantType::None:
    case QuantType::Full:
      report = quantize_fully(model_path, out_path, options, context, outputs, written);
      break;
  }
  report.settings = settings_json(options);
  return report;
}

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context, Outputs& outputs) {
  Model written;
  return quantize_to(model_path, out_path, options, context, outputs, written);
}

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return quantize(model_path, out_path, options, context, outputs); });
}

}  // namespace quench
