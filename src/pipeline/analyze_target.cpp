// SPDX-License-Identifier: Apache-2.0
// quench analyze target: the most quantised model that meets a metric.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/format.h"
#include "pipeline/debug_info.h"
#include "pipeline/job_files.h"
#include "pipeline/jury.h"
#include "pipeline/random_inputs.h"

namespace quench {
namespace {

using analyze::Choice;
using analyze::Effort;
using analyze::Verdict;

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
  const Graph& graph = analysis.simulator->model().graph;
  analyze::EvalData data(open_data(few, required_inputs(graph), context), required_inputs(graph),
                         options.quantize.batch, context);
  const analyze::Scorer scorer("sqnr", float_output_names(graph));
  analyze::SensitivityJob job{.simulator = *analysis.simulator,
                              .data = data,
                              .scorer = scorer,
                              .context = context,
                              .scores = {},
                              .checkpoint = {}};
  analyze::score_exactly(job);
  std::vector<analyze::RankedLayer> layers;
  for (const auto& layer : analyze::rank(analysis.simulator->layers(), scorer, job.scores, false)) {
    layers.push_back({.name = layer.layer, .noise = std::pow(10, -layer.sqnr / 10)});
  }
  return layers;
}

/// The job that makes the model of a choice. Biases are not corrected and channels not scaled: the
/// search judged models without that.
QuantizeOptions job_of(const AnalyzeOptions& options, const Choice& choice) {
  QuantizeOptions job = options.quantize;
  job.type = QuantType::Full;
  job.bias_correction = false;
  job.equalization = Equalization::Never;
  job.debug_info_save_path.clear();
  QuantConfig& config = job.config;
  config.skip_quant_node.insert(config.skip_quant_node.end(), choice.in_float.begin(),
                                choice.in_float.end());
  for (const auto& [layer, bits] : choice.weight_bits) config.by_layer[layer].weight_bits = bits;
  return job;
}

/// Whether a list in an INI file can hold the name.
bool can_be_listed(const std::string& name) {
  return name.find_first_of(",=\"\r\n") == std::string::npos && !name.empty() &&
         name.front() > ' ' && name.back() > ' ';
}

constexpr const char* kSettings = "target_settings.json";
constexpr const char* kConfig = "target.cfg";
constexpr const char* kStatistics = "target.stats";

/// The job as converter_lite's configuration. What its keys cannot say is in the settings.
std::string config_text(const QuantizeOptions& job) {
  std::string text = format("[quench_param]\nsettings_file={}\n", kSettings) +
                     "[common_quant_param]\nquant_type=FULL_QUANT\nbit_num=8\n";
  const std::vector<std::string>& names = job.config.skip_quant_node;
  if (!std::ranges::all_of(names, can_be_listed)) {
    text += format("# skip_quant_node is in {}: commas part names here\n", kSettings);
  } else if (!names.empty()) {
    text += format("skip_quant_node={}\n", fmt::join(names, ","));
  }
  return text + "[full_quant_param]\nbias_correction=false\n";
}

/// Writes what was found.
class TargetWriter {
 public:
  TargetWriter(Analysis& analysis, const AnalyzeOptions& options, std::string path,
               const Context& context, Outputs& outputs)
      : analysis_(analysis),
        options_(options),
        folder_(options.save_dir),
        context_(context),
        path_(std::move(path)),
        outputs_(outputs) {}

  /// Makes the model as `quantize` does, so that the configuration gives it again, and judges it.
  /// Should it come out worse than what was judged, more layers are left in float.
  void write(Jury& jury, const std::vector<analyze::RankedLayer>& worst_first, Choice& choice,
             TargetResult& result) {
    for (const auto& [next, noise] : worst_first) {
      if (choice.in_float.contains(next)) continue;
      const QuantizeOptions job = complete_job(choice);
      const Model model = make(choice, job);
      const Verdict verdict = jury.judge_written(model, choice, result.value);
      result.evaluations += verdict.passes;
      result.value = verdict.value;
      result.met = verdict.meets;
      if (result.met) return keep(model, job);
      choice.in_float.insert(next);
    }
  }

 private:
  /// A pass that observes other values rounds its sums in another order: these are the statistics
  /// that were judged.
  QuantizeOptions complete_job(const Choice& choice) {
    QuantizeOptions job = job_of(options_, choice);
    const std::string statistics = (folder_ / kStatistics).string();
    save_statistics(analysis_.simulator->statistics(), statistics);
    job.statistics = {statistics};
    return job;
  }

  Model make(const Choice& choice, const QuantizeOptions& job) {
    if (choice.in_float.size() == analysis_.simulator->layers().size()) {
      return analysis_.simulator->quantized(choice);  // there is nothing left to quantise
    }
    Model model;
    Outputs trial;  // never committed: the model may not be the last
    quantize_to(analysis_.model_path, path_, job, context_, trial, model);
    return model;
  }

  void keep(const Model& model, const QuantizeOptions& job) {
    save(model, path_, {}, outputs_);
    write_text((folder_ / kSettings).string(), settings_json(job), outputs_);
    write_text((folder_ / kConfig).string(), config_text(job), outputs_);
    const DebugInfoOptions debug = start_debug_info(options_.quantize);
    if (debug.folder.empty()) return;
    write_debug_tables(load_for_tables(analysis_.model_path, debug), model, debug, context_,
                       outputs_);
  }

  Analysis& analysis_;
  const AnalyzeOptions& options_;
  std::filesystem::path folder_;
  const Context& context_;
  std::string path_;
  Outputs& outputs_;
};

/// Where the model goes; every file that will be written is checked.
std::string check_files(const std::string& model_path, const AnalyzeOptions& options,
                        const TargetOptions& how, Outputs& outputs) {
  const std::filesystem::path folder(options.save_dir);
  std::string path = how.out_path;
  if (path.empty()) {
    make_folder((folder / "target_quant_model").string());
    path = (folder / "target_quant_model" / "model.onnx").string();
  }
  for (const std::string& each : {options.save_dir, options.quantize.debug_info_save_path}) {
    if (!each.empty()) make_folder(each);
  }
  reads_analysis(outputs, model_path, options);
  writes_model(outputs, path, "the quantised model");
  outputs.writes((folder / kStatistics).string(), "the statistics");
  outputs.writes((folder / kSettings).string(), "the settings");
  outputs.writes((folder / kConfig).string(), "the configuration");
  return path;
}

}  // namespace

TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return analyze_target(model_path, options, how, context, outputs); });
}

TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context, Outputs& outputs) {
  const std::string path = check_files(model_path, options, how, outputs);
  const auto began = std::chrono::steady_clock::now();
  Analysis analysis = set_up_analysis(model_path, options, AnalysisNeeds::Evaluation, context);
  Jury jury(analysis, how.at_least, context);
  TargetResult result{.at_least = how.at_least};
  result.metric = analysis.scorer ? analysis.scorer->metric() : "function";
  result.layers = analysis.simulator->layers().size();
  result.samples = analysis.data ? analysis.data->size() : 0;
  result.float_metric = jury.float_value();
  const Verdict all = jury.judge({}, Effort::All);
  result.quantized_metric = result.value = all.value;
  result.met = all.meets;
  Choice choice;
  std::vector<analyze::RankedLayer> worst_first;
  for (const analyze::Layer& layer : analysis.simulator->layers()) {
    worst_first.push_back({.name = layer.name});
  }
  if (!result.met && jury.enough(result.float_metric)) {
    worst_first = ranking(analysis, options, context);
    const analyze::Ladder ladder(worst_first, how.raise_bits);
    const analyze::TargetGoal goal{.at_least = how.at_least,
                                   .higher_is_better = jury.higher_is_better(),
                                   .float_value = result.float_metric,
                                   .quantized_value = result.quantized_metric};
    const analyze::Judge judge = [&](const Choice& each, Effort effort) {
      return jury.judge(each, effort);
    };
    const analyze::TargetSearch found = how.one_by_one ? analyze::search_one_by_one(ladder, judge)
                                                       : analyze::search(ladder, goal, judge);
    result.met = found.met;
    result.tried = found.tried;
    result.evaluations = found.passes;
    result.one_by_one = found.steps;
    if (found.met || jury.higher_is_better() == (found.value > result.value)) {
      choice = found.choice;
      result.value = found.value;
    }
  }
  if (result.met) {
    TargetWriter(analysis, options, path, context, outputs)
        .write(jury, worst_first, choice, result);
  }
  result.in_float.assign(choice.in_float.begin(), choice.in_float.end());
  result.weight_bits = choice.weight_bits;
  const bool share = analysis.scorer && analysis.scorer->is_share();
  result.confidence = share ? wilson(result.value, result.samples)
                            : Confidence{.low = result.value, .high = result.value};
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace quench
