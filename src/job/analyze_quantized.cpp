// SPDX-License-Identifier: Apache-2.0
// quench analyze sensitivity of a model that is quantised already (PaddleSlim's AnalysisQAT).
#include <chrono>
#include <limits>

#include "analyze/checkpoint.h"
#include "analyze/quantized_layers.h"
#include "base/file.h"
#include "base/format.h"
#include "formats/fingerprint.h"
#include "formats/locate.h"
#include "job/analysis.h"
#include "quench/formats.h"
#include "quench/ranks.h"
#include "report/job_page.h"

namespace quench::job {
namespace {

using analyze::Checkpoint;
using analyze::QuantizedLayers;
using evaluation::hash_bytes;
using evaluation::SampleScore;

using Clock = std::chrono::steady_clock;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::uint64_t hash_of(const std::string& path, std::uint64_t seed) {
  const auto file = MappedFile::open(locate_model(path).model);
  return hash_bytes(file->bytes(), seed);
}

/// One model in the eyes of an evaluation: sample by sample, or one number of a function.
std::vector<SampleScore> score(const analyze::Evaluation& with, const Model& model) {
  if (with.eval) return {{.metric = with.eval(model)}};
  return with.evaluator->samples_here(model, *with.metric);
}

void rank(const QuantizedLayers& quantized, const SensitivityOptions& how,
          analyze::Evaluation& with, Checkpoint& checkpoint, const Context& context,
          SensitivityResult& result) {
  // A function only orders: "cosine" is a mean of which more is better.
  const evaluation::SampleMetric by_function("cosine", {"function"});
  const evaluation::SampleMetric& metric = with.eval ? by_function : *with.metric;
  analyze::Scores scores;
  if (result.resumed != 0) scores = checkpoint.load();
  result.resumed = static_cast<std::int64_t>(scores.size());
  const auto& layers = quantized.layers();
  analyze::score_layers(
      {layers, scores, context, [&] { checkpoint.save(scores, with.eval != nullptr); }},
      [&](std::size_t i) { return scores.contains(layers[i].name); },
      [&](std::size_t i) { return score(with, quantized.without(i)); });
  checkpoint.save(scores, true);
  result.metric = with.eval ? "function" : metric.name();
  result.higher_is_better = metric.info().higher_is_better;
  result.layers = analyze::rank(layers, metric, scores, /*reverse=*/true);
  result.quantized_metric =
      how.quantized_metric ? *how.quantized_metric : metric.value(score(with, quantized.model()));
  if (!with.eval) {
    result.samples = with.evaluator->data().size();
    result.float_metric = metric.value(with.evaluator->own_samples(metric));
    return;
  }
  for (LayerSensitivity& layer : result.layers) layer.sqnr = kNaN;
}

}  // namespace

SensitivityResult analyze_quantized(const std::string& quantized_path,
                                    const AnalyzeOptions& options, const SensitivityOptions& how,
                                    const Context& context, Outputs& outputs) {
  if (how.quick || !how.partial_runs) {
    fail(ErrorKind::Usage,
         "a quantised model is evaluated as it is: leave out quick and whole runs");
  }
  if (options.eval_function && !options.metric_command.empty()) {
    fail(ErrorKind::Usage, "give an eval_function or a metric command, not both");
  }
  reads_model(outputs, how.float_model, "the float model");
  const RankingFiles files(quantized_path, options, context, outputs);
  const Model plain = load(how.float_model);
  if (context.ranks) context.ranks->agree("the float model", fingerprint(plain));
  std::optional<QuantizedLayers> quantized;
  try {
    quantized.emplace(load(quantized_path), prepare_for_quantization(plain));
  } catch (Error& error) {
    throw error.in(quantized_path);
  }
  if (!how.op_types.empty()) quantized->keep_types(how.op_types);
  SensitivityResult result{.reverse = true, .strangers = quantized->strangers()};
  if (!result.strangers.empty()) {
    context.warn(
        format("analysis: layers left out, the float model does not have them count={} "
               "first {}",
               result.strangers.size(), result.strangers.front()));
  }
  analyze::Evaluation with;
  analyze::open_evaluation(with, plain, options, context);
  const std::uint64_t models = hash_of(how.float_model, hash_of(quantized_path, 0));
  Checkpoint checkpoint(
      files.checkpoint,
      {.model = format("{:016x}", models),
       .data = format("{:016x}", with.evaluator ? with.evaluator->data().fingerprint() : 0),
       .settings =
           format("{} {} quantised batch {}", with.metric ? with.metric->name() : "function",
                  options.metric_command, options.quantize.batch)},
      context);
  result.resumed = options.resume ? 1 : 0;
  const auto began = Clock::now();
  rank(*quantized, how, with, checkpoint, context, result);
  if (with.eval) result.float_metric = with.eval(plain);
  result.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  if (!context.writes()) return result;
  write_analysis(result, files.table, outputs);
  if (const std::string& page = options.quantize.report_save_path; !page.empty()) {
    report::write_page(report::page_of(*quantized, result, quantized_path, how, options), page,
                       outputs);
  }
  return result;
}

}  // namespace quench::job
