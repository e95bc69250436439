// SPDX-License-Identifier: Apache-2.0
// quench analyze target: the most quantised model that meets a metric.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "analyze/sensitivity.h"
#include "analyze/target.h"
#include "base/format.h"
#include "pipeline/analyze_setup.h"
#include "pipeline/random_inputs.h"

namespace quench {
namespace {

using analyze::Choice;
using analyze::Verdict;

/// Samples that the ranking looks at: noise at the outputs needs few.
constexpr std::int64_t kRankingSamples = 48;
/// Samples that a choice is judged by before it may be dropped.
constexpr std::int64_t kFirstLook = 16;
/// Standard errors below the target at which a choice is dropped.
constexpr double kHopeless = 3;

/// Layers by the noise that quantising each brings, worst first; needs no labels.
std::vector<std::string> ranking(Analysis& analysis, const AnalyzeOptions& options,
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
  std::vector<std::string> names;
  for (const auto& layer : analyze::rank(analysis.simulator->layers(), scorer, job.scores, false)) {
    names.push_back(layer.layer);
  }
  return names;
}

/// Judges choices by the evaluation data or by the caller's function.
class Jury {
 public:
  Jury(Analysis& analysis, double at_least, const Context& context)
      : analysis_(analysis), at_least_(at_least), context_(context) {
    if (analysis_.eval) return;
    job_.emplace(analyze::SensitivityJob{.simulator = *analysis_.simulator,
                                         .data = *analysis_.data,
                                         .scorer = *analysis_.scorer,
                                         .context = context_,
                                         .scores = {},
                                         .checkpoint = {}});
    expected_ = analyze::float_outputs(*job_);
  }

  bool higher_is_better() const { return analysis_.eval || analysis_.scorer->higher_is_better(); }
  bool enough(double value) const {
    return higher_is_better() ? value >= at_least_ : value <= at_least_;
  }

  double float_value() {
    if (analysis_.eval) return analysis_.eval(analysis_.simulator->model());
    std::vector<analyze::SampleScore> scores;
    for (std::int64_t i = 0; i < analysis_.data->batches(); ++i) {
      const TensorMap& own = expected_[static_cast<std::size_t>(i)];
      analysis_.scorer->add(*analysis_.data->batch(i), own, own, scores);
    }
    return analysis_.scorer->value(scores);
  }

  Verdict judge(const Choice& choice, bool whole) {
    context_.check_cancelled();
    context_.report("searching", ++asked_, 0);
    Model model = analysis_.simulator->quantized(choice);
    if (analysis_.eval) {
      const double value = analysis_.eval(model);
      return {.meets = enough(value), .value = value};
    }
    Session session(std::move(model), {}, context_);
    std::vector<analyze::SampleScore> scores;
    const std::int64_t batches = analysis_.data->batches();
    for (std::int64_t i = 0; i < batches; ++i) {
      const auto batch = analysis_.data->batch(i);
      analysis_.scorer->add(*batch, session.run(batch->inputs, analysis_.scorer->outputs()),
                            expected_[static_cast<std::size_t>(i)], scores);
      if (!whole && i + 1 < batches && hopeless(scores)) {
        const double passes =
            static_cast<double>(scores.size()) / static_cast<double>(analysis_.data->size());
        return {.value = analysis_.scorer->value(scores), .passes = passes, .whole = false};
      }
    }
    const double value = analysis_.scorer->value(scores);
    return {.meets = enough(value), .value = value};
  }

 private:
  /// Whether a share of samples cannot come up to the target any more, for sure or nearly.
  bool hopeless(const std::vector<analyze::SampleScore>& scores) const {
    if (!analysis_.scorer->is_share()) return false;
    const auto seen = static_cast<double>(scores.size());
    if (seen < static_cast<double>(kFirstLook)) return false;
    const auto all = static_cast<double>(analysis_.data->size());
    const double share = analysis_.scorer->value(scores) / 100;
    if (100 * (share * seen + all - seen) / all < at_least_) return true;
    const double spread = std::sqrt(std::max(share * (1 - share), 1 / seen) / seen);
    return 100 * (share + kHopeless * spread) < at_least_;
  }

  Analysis& analysis_;
  double at_least_;
  const Context& context_;
  std::optional<analyze::SensitivityJob> job_;
  std::vector<TensorMap> expected_;
  std::int64_t asked_ = 0;
};

/// The choice as converter_lite's configuration.
std::string config_text(const Choice& choice) {
  std::vector<std::string> names;
  std::string unsaid;
  for (const std::string& name : choice.in_float) {
    if (name.find_first_of(",\r\n") == std::string::npos) {
      names.push_back(name);
    } else {
      unsaid += format("# not in the list, which commas part: {}\n", on_one_line(name));
    }
  }
  std::string text = "[common_quant_param]\nquant_type=FULL_QUANT\nbit_num=8\n" + unsaid;
  if (!names.empty()) text += format("skip_quant_node={}\n", fmt::join(names, ","));
  return text + "[full_quant_param]\nbias_correction=false\n";
}

void write_model(Analysis& analysis, const AnalyzeOptions& options, const TargetOptions& how,
                 const Choice& choice) {
  const std::filesystem::path folder(options.save_dir);
  std::string path = how.out_path;
  if (path.empty()) {
    make_folder((folder / "target_quant_model").string());
    path = (folder / "target_quant_model" / "model.onnx").string();
  }
  save(analysis.simulator->quantized(choice), path);
  write_text((folder / "target.cfg").string(), config_text(choice));
}

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
  const Verdict all = jury.judge({}, true);
  result.quantized_metric = result.value = all.value;
  result.met = all.meets;
  Choice choice;
  if (!result.met && jury.enough(result.float_metric)) {
    const analyze::Ladder ladder(ranking(analysis, options, context), how.raise_bits);
    const analyze::TargetSearch found = analyze::search(
        ladder, [&](const Choice& each, bool whole) { return jury.judge(each, whole); });
    result.met = found.met;
    result.tried = found.tried;
    result.evaluations = found.passes;
    result.one_by_one = found.steps;
    if (found.met || jury.higher_is_better() == (found.value > result.value)) {
      choice = found.choice;
      result.value = found.value;
    }
  }
  result.in_float.assign(choice.in_float.begin(), choice.in_float.end());
  result.weight_bits = choice.weight_bits;
  const bool share = analysis.scorer && analysis.scorer->is_share();
  result.confidence = share ? wilson(result.value, result.samples)
                            : Confidence{.low = result.value, .high = result.value};
  if (result.met) write_model(analysis, options, how, choice);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace quench
