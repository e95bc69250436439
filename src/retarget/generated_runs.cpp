// SPDX-License-Identifier: Apache-2.0
// Random inputs at which a quantised model and its float self are held against each other.
#include "retarget/generated_runs.h"

#include <algorithm>
#include <random>

#include "base/format.h"
#include "evaluate/random_inputs.h"
#include "retarget/params_of.h"

namespace quench::retargeting {
namespace {

/// Most of the numbers lie in the middle third of the input's range.
TensorMap generated(const Raised& raised, const std::vector<Value>& inputs,
                    const std::map<std::string, Shape>& shapes, std::mt19937_64& generator) {
  TensorMap feeds = random_feeds(inputs, shapes, generator);
  for (auto& [name, tensor] : feeds) {
    const auto scale = raised.values.find(name);
    if (scale == raised.values.end() || tensor.dtype() != DType::Float32) continue;
    const Range range = range_of(scale->second);
    constexpr double kSpread = 6;
    const double middle = (range.min + range.max) / 2;
    const double width = (range.max - range.min) / kSpread;
    for (float& each : tensor.mutable_data<float>()) {
      each = static_cast<float>(
          std::clamp(middle + width * static_cast<double>(each), range.min, range.max));
    }
  }
  return feeds;
}

}  // namespace

std::vector<TensorMap> generated_runs(const Model& reference, const Raised& raised,
                                      const RetargetOptions& options, std::uint64_t seed,
                                      RetargetReport& report) {
  std::mt19937_64 generator(seed);
  const std::vector<Value> inputs = required_inputs(reference.graph);
  const std::int64_t batch = effective_batch(inputs, 1);
  std::vector<TensorMap> runs;
  try {
    const auto shapes = resolve_shapes(inputs, options.shapes, batch);
    for (; report.samples < options.samples; report.samples += batch) {
      runs.push_back(generated(raised, inputs, shapes, generator));
    }
  } catch (const Error& error) {
    report.warnings.push_back(
        format("the result was not held against the original: {}, or --data", error.what()));
  }
  return runs;
}

}  // namespace quench::retargeting
