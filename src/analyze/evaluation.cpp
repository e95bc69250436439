// SPDX-License-Identifier: Apache-2.0
// Opens what the models of an analysis are evaluated with.
#include "analyze/evaluation.h"

#include "base/format.h"
#include "evaluate/metric_command.h"
#include "evaluate/random_inputs.h"
#include "quench/ranks.h"

namespace quench::analyze {

void open_evaluation(Evaluation& opened, const Model& model, const AnalyzeOptions& options,
                     const Context& context) {
  if (options.eval_function) {
    opened.eval = options.eval_function;
    return;
  }
  if (!options.metric_command.empty()) {
    // Ranks may share the folder.
    const std::string name =
        context.ranks ? format("metric_model_rank{}", context.ranks->rank()) : "metric_model";
    opened.eval = [command = options.metric_command, folder = options.save_dir,
                   name](const Model& m) {
      return evaluation::run_metric_command(command, m, folder, name);
    };
    return;
  }
  const DataOptions& eval = options.eval.path.empty() ? options.quantize.data : options.eval;
  if (eval.path.empty()) {
    fail(ErrorKind::Usage, "the metric '{}' needs evaluation data: give --eval-data or --data",
         options.metric.empty() ? "sqnr" : options.metric);
  }
  const std::vector<Value> inputs = required_inputs(model.graph);
  auto source = open_data(eval, inputs, context);
  std::string metric = options.metric;
  if (metric.empty()) metric = source->has_labels() ? "top1" : "sqnr";
  opened.metric.emplace(metric, float_output_names(model.graph), source->truths());
  if (opened.metric->info().needs_labels && !source->has_labels()) {
    fail(ErrorKind::BadData, "the metric '{}' needs labels, and {} has none: give --eval-labels",
         metric, eval.path);
  }
  evaluation::EvalData data(std::move(source), inputs, options.quantize.batch, context);
  opened.evaluator.emplace(model, std::move(data), context);
}

}  // namespace quench::analyze
