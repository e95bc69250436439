// SPDX-License-Identifier: Apache-2.0
// Full quantisation, step by step.
#include "quench/quantize.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/file.h"
#include "base/format.h"
#include "calibrate/collect.h"
#include "calibrate/tally.h"
#include "passes/run.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/random_inputs.h"
#include "pipeline/scoring.h"
#include "pipeline/small_layers.h"
#include "pipeline/weight.h"
#include "tune/bias_correction.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

/// Fewer calibration samples than this are worth a warning.
constexpr std::int64_t kFewSamples = 10;

/// Which samples calibrate and which judge.
struct Split {
  std::int64_t calibrate = 0;
  std::int64_t judge = 0;
};

/// Both parts are whole batches of a model whose batch is fixed.
Split split(std::int64_t samples, std::int64_t held_out, std::int64_t batch) {
  const std::int64_t judge = std::min(held_out, samples / 5) / batch * batch;
  return {.calibrate = (samples - judge) / batch * batch, .judge = judge};
}

std::vector<Value> model_inputs(const Graph& graph) {
  std::vector<Value> inputs;
  for (const ValueId id : graph.inputs) {
    if (!graph[id].constant) inputs.push_back(graph[id]);
  }
  return inputs;
}

bool fixed_batch(const std::vector<Value>& inputs) {
  return std::ranges::any_of(inputs, [](const Value& value) {
    return value.type.shape && !value.type.shape->empty() && value.type.shape->front().known();
  });
}

/// How many samples a run takes at least: the batch of a model that fixes it, else one.
std::int64_t run_size(const SampleSource& source, const std::vector<Value>& inputs) {
  return source.batchable() ? std::max<std::int64_t>(1, effective_batch(inputs, 1)) : 1;
}

/// Samples [first, first + count) put together along the first dimension.
TensorMap read_together(SampleSource& source, std::int64_t first, std::int64_t count) {
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < count; ++i) samples.push_back(source.read(first + i));
  if (count == 1) return samples.front().inputs;
  TensorMap result;
  for (const auto& [name, one] : samples.front().inputs) {
    Shape shape = one.shape();
    shape[0] = count;
    Tensor whole = Tensor::zeros(one.dtype(), shape);
    auto bytes = whole.mutable_bytes();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto part = samples[i].inputs.at(name).bytes();
      std::ranges::copy(part, bytes.begin() + static_cast<std::ptrdiff_t>(i * part.size()));
    }
    result[name] = std::move(whole);
  }
  return result;
}

/// Cosine, SQNR and agreement of two models' outputs, sample by sample.
std::vector<OutputScores> judge(const Model& reference, const Model& quantised,
                                SampleSource& source, const Split& parts, const Context& context) {
  if (parts.judge == 0) return {};
  Session expected(reference, {}, context);
  Session actual(quantised, {}, context);
  std::vector<ScoreCard> cards;
  for (const Value& output : expected.outputs()) {
    if (info(output.type.dtype).is_float) {
      cards.emplace_back(output.name, std::vector<std::string>{"cosine", "sqnr", "agreement"});
    }
  }
  const std::int64_t batch = run_size(source, expected.inputs());
  for (std::int64_t i = 0; i < parts.judge; i += batch) {
    context.check_cancelled();
    const TensorMap inputs = read_together(source, parts.calibrate + i, batch);
    const TensorMap want = expected.run(inputs);
    const TensorMap got = actual.run(inputs);
    for (ScoreCard& card : cards) card.add(got.at(card.output()), want.at(card.output()));
    context.report("judging", i + batch, parts.judge);
  }
  std::vector<OutputScores> scores;
  for (const ScoreCard& card : cards) scores.push_back(card.scores());
  return scores;
}

double worst_cosine(const std::vector<OutputScores>& outputs) {
  double worst = 1;
  for (const OutputScores& each : outputs) {
    const auto found = each.scores.find("cosine");
    if (found != each.scores.end()) worst = std::min(worst, found->second);
  }
  return worst;
}

/// The state of one job between its steps.
struct Job {
  Model model;
  QuantPlan plan;
  StatisticMap statistics;
  QuantSolution solution;
  std::unique_ptr<SampleSource> source;
  Split parts;
};

Job start(const std::string& model_path, const QuantizeOptions& options, const Context& context) {
  Job job;
  Model model = load(model_path);
  set_input_shapes(model, options.input_shapes);
  job.model = prepare_for_quantization(std::move(model));
  job.plan = make_plan(job.model, without_small_layers(job.model.graph, options));
  // A wrong name is reported before the data are read.
  calibrate::check_observers(job.plan, options.config.custom_observers);
  if (!options.data.path.empty()) {
    job.source = open_data(options.data, model_inputs(job.model.graph), context);
    const std::int64_t batch = run_size(*job.source, model_inputs(job.model.graph));
    job.parts = split(job.source->size(), options.held_out, batch);
    if (job.parts.calibrate == 0) {
      fail(ErrorKind::BadData, "{} holds {} samples, but '{}' takes {} a run", options.data.path,
           job.source->size(), model_path, batch);
    }
  }
  return job;
}

void gather(Job& job, const QuantizeOptions& options, const Context& context) {
  if (!options.statistics.empty()) {
    for (const std::string& path : options.statistics) {
      calibrate::append(job.statistics, load_statistics(path));
    }
    return;
  }
  if (!job.source) {
    fail(ErrorKind::Usage,
         "full quantisation needs samples to calibrate with: give --data, or "
         "--stats with a file of `quench calibrate`");
  }
  job.statistics =
      calibrate::collect(job.model, observed_values(job.plan), *job.source,
                         {.batch = options.batch, .count = job.parts.calibrate}, context);
}

/// Keeps the corrected biases only where they bring the outputs nearer.
Model tuned(Job& job, const QuantizeOptions& options, const Context& context,
            QuantizeReport& report) {
  Model plain = insert_qdq(job.model, job.plan, job.solution);
  report.outputs = job.source ? judge(job.model, plain, *job.source, job.parts, context)
                              : std::vector<OutputScores>();
  const bool possible = options.bias_correction && job.source && job.parts.calibrate > 0 &&
                        !fixed_batch(model_inputs(job.model.graph)) && job.source->batchable();
  if (!possible) return plain;
  const std::int64_t count = std::min(job.parts.calibrate, options.correction_samples);
  Model corrected = job.model;
  const TensorMap samples = read_together(*job.source, 0, count);
  const std::size_t layers =
      tune::correct_biases(corrected, job.plan, job.solution, samples, context);
  if (layers == 0) return plain;
  Model better = insert_qdq(corrected, job.plan, job.solution);
  const auto scores = judge(job.model, better, *job.source, job.parts, context);
  if (!scores.empty() && worst_cosine(scores) < worst_cosine(report.outputs)) return plain;
  report.outputs = scores;
  report.corrected_layers = layers;
  return better;
}

}  // namespace

Model prepare_for_quantization(Model model) {
  constexpr std::array<std::string_view, 4> kPasses = {"inline_functions", "lift_constants",
                                                       "remove_identity", "fold_batchnorm"};
  infer_types(model);
  passes::run(model, kPasses, {});
  infer_types(model);
  return model;
}

void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context) {
  Job job = start(model_path, options, context);
  gather(job, options, context);
  save_statistics(job.statistics, statistics_path);
}

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context) {
  if (options.type == QuantType::Weight) {
    return quantize_weights(model_path, out_path, options, context);
  }
  if (options.type == QuantType::Dynamic) {
    return quantize_dynamic(model_path, out_path, options, context);
  }
  const auto began = Clock::now();
  QuantizeReport report;
  Job job = start(model_path, options, context);
  note_decisions(job.model, job.plan, report);
  report.warnings = options.notes;
  if (report.integer_nodes == 0) {
    fail(ErrorKind::Unsupported, "no layer of '{}' can be quantised for target '{}'", model_path,
         options.config.target);
  }
  { const AtomicFile probe(out_path); }  // a path that cannot be written: say so before the work
  gather(job, options, context);
  warn_of_values(job.statistics, report);
  if (job.source && job.parts.calibrate < kFewSamples) {
    report.warnings.push_back(
        format("only {} samples to calibrate with; 100 or more that look like the real ones give "
               "better ranges",
               job.parts.calibrate));
  }
  job.solution =
      calibrate::solve(job.model, job.plan, job.statistics, options.config.custom_observers);
  Model quantised = tuned(job, options, context, report);
  if (options.qoperator) quantised = to_qoperator(quantised);
  save(quantised, out_path);
  report.calibration_samples = job.source ? job.parts.calibrate : 0;
  report.judged_samples = job.parts.judge;
  report.bytes_before = static_cast<std::int64_t>(file_size(model_path));
  report.bytes_after = static_cast<std::int64_t>(file_size(out_path));
  report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return report;
}

}  // namespace quench
