// SPDX-License-Identifier: Apache-2.0
// quench analyze target: the most quantised model that meets a metric.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/format.h"
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
  TargetWriter(Analysis& analysis, const AnalyzeOptions& options, const TargetOptions& how,
               const Context& context)
      : analysis_(analysis), options_(options), folder_(options.save_dir), context_(context) {
    path_ = how.out_path;
    if (!path_.empty()) return;
    make_folder((folder_ / "target_quant_model").string());
    path_ = (folder_ / "target_quant_model" / "model.onnx").string();
  }

  /// Writes the model as `quantize` does, so that the configuration gives it again, and judges the
  /// file. Should it come out worse than what was judged, more layers are left in float.
  void write(Jury& jury, const std::vector<analyze::RankedLayer>& worst_first, Choice& choice,
             TargetResult& result) {
    for (const auto& [next, noise] : worst_first) {
      if (choice.in_float.contains(next)) continue;
      make(choice);
      const Verdict verdict = jury.judge_file(path_, choice, result.value);
      result.evaluations += verdict.passes;
      result.value = verdict.value;
      result.met = verdict.meets;
      if (result.met) return;
      choice.in_float.insert(next);
    }
    std::filesystem::remove(path_);
  }

 private:
  void make(const Choice& choice) {
    QuantizeOptions job = job_of(options_, choice);
    // A pass that observes other values rounds its sums in another order: these are the statistics
    // that were judged.
    const std::string statistics = (folder_ / "target.stats").string();
    save_statistics(analysis_.simulator->statistics(), statistics);
    job.statistics = {statistics};
    if (choice.in_float.size() == analysis_.simulator->layers().size()) {
      save(analysis_.simulator->quantized(choice), path_);  // there is nothing left to quantise
    } else {
      quantize(analysis_.model_path, path_, job, context_);
    }
    write_text((folder_ / kSettings).string(), settings_json(job));
    write_text((folder_ / "target.cfg").string(), config_text(job));
  }

  Analysis& analysis_;
  const AnalyzeOptions& options_;
  std::filesystem::path folder_;
  const Context& context_;
  std::string path_;
};

}  // namespace

TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context) {
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
    TargetWriter(analysis, options, how, context).write(jury, worst_first, choice, result);
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
