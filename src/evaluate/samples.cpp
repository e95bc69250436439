// SPDX-License-Identifier: Apache-2.0
// Divides samples into sets, and reads them in runs.
#include "evaluate/samples.h"

#include <algorithm>
#include <utility>

#include "data/join.h"
#include "evaluate/random_inputs.h"
#include "formats/fingerprint.h"

namespace quench::evaluation {

std::string identity_of(SampleSource& source) {
  Fingerprint data;
  data.add(source.size());
  if (source.size() > 0) data.add(source.read(0).inputs);
  return data.text();
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

Samples::Samples(std::unique_ptr<SampleSource> source, const Graph& graph,
                 std::int64_t most_validation, bool calibrates)
    : source_(std::move(source)), inputs_(required_inputs(graph)) {
  const std::int64_t size = run_size();
  const std::int64_t all = source_->size();
  validation_ = std::min(most_validation, calibrates ? all / 5 : all) / size * size;
  calibration_ = calibrates ? (all - validation_) / size * size : 0;
}

SampleRange Samples::first(std::int64_t most) const {
  const std::int64_t size = run_size();
  return {.first = 0, .count = std::min(calibration_, most) / size * size};
}

std::vector<TensorMap> Samples::read(SampleRange range, std::int64_t most) const {
  return read_runs(*source_, inputs_, range, most);
}

}  // namespace quench::evaluation
