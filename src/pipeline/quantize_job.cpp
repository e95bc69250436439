// SPDX-License-Identifier: Apache-2.0
// Reads the samples of a job.
#include "pipeline/quantize_job.h"

#include <algorithm>
#include <utility>

#include "data/join.h"
#include "pipeline/random_inputs.h"

namespace quench {

std::vector<Value> model_inputs(const Graph& graph) {
  std::vector<Value> inputs;
  for (const ValueId id : graph.inputs) {
    if (!graph[id].constant) inputs.push_back(graph[id]);
  }
  return inputs;
}

std::int64_t run_size(const SampleSource& source, const std::vector<Value>& inputs) {
  return source.batchable() ? std::max<std::int64_t>(1, effective_batch(inputs, 1)) : 1;
}

std::vector<TensorMap> read_runs(SampleSource& source, const std::vector<Value>& inputs,
                                 SampleRange samples, std::int64_t most) {
  const std::int64_t least = run_size(source, inputs);
  const bool fixed = std::ranges::any_of(inputs, [](const Value& value) {
    return value.type.shape && !value.type.shape->empty() && value.type.shape->front().known();
  });
  const std::int64_t size = fixed || !source.batchable() ? least : std::max(least, most);
  std::vector<TensorMap> runs;
  std::vector<Sample> run;
  const auto end_run = [&] {
    if (!run.empty()) runs.push_back(join(std::exchange(run, {})).inputs);
  };
  const std::int64_t end = samples.first + (fixed ? samples.count / least * least : samples.count);
  for (std::int64_t i = samples.first; i < end; ++i) {
    Sample sample = source.read(i);
    const bool full = static_cast<std::int64_t>(run.size()) == size;
    // A run of a fixed size cannot end early: joining says which samples do not fit.
    if (full || (!fixed && !run.empty() && !alike(run.front(), sample))) end_run();
    run.push_back(std::move(sample));
  }
  end_run();
  return runs;
}

std::vector<TensorMap> read_runs(const Job& job, SampleRange samples, std::int64_t most) {
  return read_runs(*job.source, model_inputs(job.model.graph), samples, most);
}

}  // namespace quench
