// SPDX-License-Identifier: Apache-2.0
// Reads the samples of a job.
#include "pipeline/quantize_job.h"

#include <algorithm>

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

std::vector<TensorMap> read_runs(const Job& job, std::int64_t first, std::int64_t count,
                                 std::int64_t most) {
  const std::vector<Value> inputs = model_inputs(job.model.graph);
  const std::int64_t least = run_size(*job.source, inputs);
  const bool fixed = std::ranges::any_of(inputs, [](const Value& value) {
    return value.type.shape && !value.type.shape->empty() && value.type.shape->front().known();
  });
  const std::int64_t step = fixed || !job.source->batchable() ? least : std::max(least, most);
  std::vector<TensorMap> runs;
  for (std::int64_t i = 0; i < count; i += step) {
    const std::int64_t size = std::min(step, count - i);
    if (size < least) break;
    runs.push_back(read_together(*job.source, first + i, size));
  }
  return runs;
}

}  // namespace quench
