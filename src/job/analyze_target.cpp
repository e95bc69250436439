// SPDX-License-Identifier: Apache-2.0
// quench analyze target: the most quantised model that meets a metric.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "analyze/goal.h"
#include "analyze/sensitivity.h"
#include "analyze/target.h"
#include "base/file.h"
#include "base/format.h"
#include "base/made_folder.h"
#include "base/share.h"
#include "evaluate/random_inputs.h"
#include "formats/registry.h"
#include "job/analysis.h"
#include "job/job_files.h"
#include "options/config_text.h"
#include "quench/formats.h"

namespace quench {
namespace {

using analyze::Choice;
using analyze::Effort;
using analyze::Goal;
using analyze::Verdict;
using job::Analysis;

/// Samples that the ranking looks at: noise at the outputs needs few.
constexpr std::int64_t kRankingSamples = 48;

/// Layers by the noise that quantising each brings, worst first; needs no labels.
std::vector<analyze::RankedLayer> ranking(Analysis& analysis, const AnalyzeOptions& options,
                                          const Context& context) {
  DataOptions few = options.quantize.data.path.empty() ? options.eval : options.quantize.data;
  if (few.path.empty()) {
    fail(ErrorKind::Usage, "layers are ranked by running them: give --data or --eval-data");
  }
  few.limit = few.limit > 0 ? std::min(few.limit, kRankingSamples) : kRankingSamples;
  const Model& model = analysis.job.model;
  const std::vector<Value> inputs = required_inputs(model.graph);
  evaluation::EvalData data(open_data(few, inputs, context), inputs, options.quantize.batch,
                            context);
  evaluation::Evaluator evaluator(model, std::move(data), context);
  const evaluation::SampleMetric metric("sqnr", float_output_names(model.graph));
  analyze::SensitivityJob job{.simulator = *analysis.simulator,
                              .evaluator = evaluator,
                              .metric = metric,
                              .context = context,
                              .scores = {},
                              .checkpoint = {}};
  analyze::score_exactly(job);
  std::vector<analyze::RankedLayer> layers;
  for (const auto& layer : analyze::rank(analysis.simulator->layers(), metric, job.scores, false)) {
    layers.push_back({.name = layer.layer, .noise = std::pow(10, -layer.sqnr / 10)});
  }
  return layers;
}

/// The job that makes the model of a choice.
QuantizeOptions options_of(const AnalyzeOptions& options, const Choice& choice) {
  QuantizeOptions job = options.quantize;
  QuantConfig& config = job.config;
  config.skip_quant_node.insert(config.skip_quant_node.end(), choice.in_float.begin(),
                                choice.in_float.end());
  for (const auto& [layer, bits] : choice.weight_bits) config.by_layer[layer].weight_bits = bits;
  return job;
}

constexpr const char* kResults = "target_quant_model";
constexpr const char* kSettings = "target_settings.json";
constexpr const char* kConfig = "target.cfg";

/// Makes the model of a choice as `quantize` does, so that the configuration gives it again, and
/// evaluates it. Should it come out worse than what was searched with, more layers are left in
/// float.
class Finisher {
 public:
  Finisher(Analysis& analysis, const AnalyzeOptions& options, Goal& goal, const Context& context)
      : analysis_(analysis), options_(options), goal_(goal), context_(context) {}

  void run(const std::vector<analyze::RankedLayer>& worst_first, Choice& choice,
           TargetResult& result) {
    std::size_t next = 0;
    while (!make(choice, result) && next < worst_first.size()) {
      while (next < worst_first.size() && choice.in_float.contains(worst_first[next].name)) ++next;
      if (next < worst_first.size()) choice.in_float.insert(worst_first[next].name);
    }
  }

  /// The job of the last choice.
  job::Job& job() { return *job_; }

 private:
  bool make(const Choice& choice, TargetResult& result) {
    job_ = std::make_unique<job::Job>(analysis_.job.model_path, options_of(options_, choice),
                                      context_);
    job_->out_path = analysis_.job.out_path;
    if (choice.in_float.size() == analysis_.simulator->layers().size()) {
      job::prepare(*job_);  // there is nothing left to quantise
      job_->quantized = job_->written = analysis_.simulator->quantized(choice);
    } else {
      job::run(*job_);
    }
    const Model file = as_read(job_->written, job_->out_path);
    const Verdict verdict =
        goal_.evaluate(retargeting::with_float_edges(file, job_->edges), Effort::All);
    goal_.note(choice, verdict);
    result.evaluations += verdict.passes;
    result.value = verdict.value;
    return result.met = verdict.meets;
  }

  Analysis& analysis_;
  const AnalyzeOptions& options_;
  Goal& goal_;
  const Context& context_;
  std::unique_ptr<job::Job> job_;
};

/// Where the model goes; every file that will be written is checked.
std::string check_files(const std::string& model_path, const AnalyzeOptions& options,
                        const TargetOptions& how, Outputs& outputs) {
  const std::filesystem::path folder(options.save_dir);
  std::string path = how.out_path;
  if (path.empty()) {
    path = (folder / kResults / file_for_target(options.quantize.config.target)).string();
  }
  reads_analysis(outputs, model_path, options);
  writes_model(outputs, path, "the quantised model");
  outputs.writes((folder / kSettings).string(), "the settings");
  outputs.writes((folder / kConfig).string(), "the configuration");
  if (!options.quantize.report_save_path.empty()) {
    writes_report(outputs, options.quantize.report_save_path);
  }
  return path;
}

/// Looks for the layers to leave in float; `worst_first` gets their order.
Choice search(Analysis& analysis, const AnalyzeOptions& options, const TargetOptions& how,
              Goal& goal, std::vector<analyze::RankedLayer>& worst_first, TargetResult& result) {
  worst_first = ranking(analysis, options, analysis.job.context);
  const analyze::Ladder ladder(worst_first, how.raise_bits);
  const analyze::TargetGoal wanted{.at_least = how.at_least,
                                   .higher_is_better = goal.higher_is_better(),
                                   .float_value = result.float_metric,
                                   .quantized_value = result.quantized_metric,
                                   .is_share = goal.is_share()};
  const analyze::EvaluateChoice evaluate = [&](const Choice& each, Effort effort) {
    return goal.evaluate(each, effort);
  };
  const analyze::TargetSearch found = how.one_by_one ? analyze::search_one_by_one(ladder, evaluate)
                                                     : analyze::search(ladder, wanted, evaluate);
  result.met = found.met;
  result.tried = found.tried;
  result.evaluations = found.passes;
  result.one_by_one = found.steps;
  if (!found.met && goal.higher_is_better() != (found.value > result.value)) return {};
  result.value = found.value;
  return found.choice;
}

void refuse_parts(const Context& context) {
  if (shards(context) == nullptr) return;
  fail(ErrorKind::Unsupported,
       "the search for a target tries layers on runs that stop when enough is seen, which ranks "
       "with parts of a model cannot do alike: rank layers by analyze sensitivity and leave the "
       "first of them in float with skip-node");
}

}  // namespace

TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return analyze_target(model_path, options, how, context, outputs); });
}

TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context, Outputs& outputs) {
  refuse_parts(context);
  if (std::isnan(how.at_least)) fail(ErrorKind::Usage, "--at-least is NaN; give a number");
  if (!context.writes()) outputs.keep_nothing();
  const bool stay = !context.writes();
  const MadeFolder made(options.save_dir, stay);
  const MadeFolder tables(options.quantize.debug_info_save_path, stay);
  const std::filesystem::path results = std::filesystem::path(options.save_dir) / kResults;
  const MadeFolder beside(how.out_path.empty() ? results.string() : "", stay);
  const std::string path = check_files(model_path, options, how, outputs);
  if (how.raise_bits > 0 && options.quantize.type == QuantType::Dynamic) {
    fail(ErrorKind::Usage, "--raise-bits is for --type full and weight: dynamic takes 8 bits");
  }
  const auto began = std::chrono::steady_clock::now();
  const auto started =
      job::start_analysis(model_path, options, job::AnalysisNeeds::Evaluation, context, path);
  Analysis& analysis = *started;
  Goal goal(analysis, *analysis.simulator, how.at_least, context);
  TargetResult result{.at_least = how.at_least};
  result.metric = analysis.metric ? analysis.metric->name() : "function";
  result.layers = analysis.simulator->layers().size();
  result.samples = analysis.evaluator ? analysis.evaluator->data().size() : 0;
  result.float_metric = goal.float_value();
  const Verdict all = goal.evaluate(Choice(), Effort::All);
  result.quantized_metric = result.value = all.value;
  result.met = all.meets;
  Choice choice;
  std::vector<analyze::RankedLayer> worst_first;
  if (!result.met && goal.enough(result.float_metric)) {
    choice = search(analysis, options, how, goal, worst_first, result);
  }
  if (result.met) {
    Finisher finisher(analysis, options, goal, context);
    if (worst_first.empty()) {
      for (const analyze::Layer& layer : analysis.simulator->layers()) {
        worst_first.push_back({.name = layer.name});
      }
    }
    finisher.run(worst_first, choice, result);
    if (result.met) {
      const std::filesystem::path folder(options.save_dir);
      finisher.job().target = {
          .metric = result.metric, .at_least = how.at_least, .trials = goal.trials()};
      if (context.writes()) {
        job::write(finisher.job(), path, outputs);
        const QuantizeOptions chosen = options_of(options, choice);
        write_text((folder / kSettings).string(), settings_json(chosen), outputs);
        write_text((folder / kConfig).string(), options::config_text(chosen), outputs);
      }
    }
  }
  result.in_float.assign(choice.in_float.begin(), choice.in_float.end());
  result.weight_bits = choice.weight_bits;
  result.trials = goal.trials();
  result.confidence = goal.is_share() ? wilson(result.value, result.samples)
                                      : Confidence{.low = result.value, .high = result.value};
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace quench
