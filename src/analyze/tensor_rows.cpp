// SPDX-License-Identifier: Apache-2.0
// One pass in which a float and a quantised model are seen side by side, and weights as they
// became.
#include "analyze/tensor_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "analyze/twin.h"
#include "calibrate/collect.h"
#include "observe/scan.h"

namespace quench::analyze {
namespace {

/// What a layer reads.
std::string input_of(const Graph& graph, const Layer& layer) {
  return graph[node_called(graph, layer.node).inputs[0]].name;
}

/// A weight that is not float any more: what it stands for, and its integers.
struct Rounded {
  Tensor values;
  Tensor integers;
};

/// Nothing for a product whose weight the file holds in another layout.
std::optional<Rounded> rounded_weight(const tune::State& job, Simulator& simulator,
                                      const Layer& layer, const Tensor& real) {
  if (!layer.stored) {
    const QuantParams& params = job.solution.weights.at({layer.node, 1});
    return Rounded{.values = fake_quantize(real, params),
                   .integers = quantize_tensor(real, params)};
  }
  const int threads = job.context.num_threads();
  const std::optional<quant::QuantWeight> stored = simulator.stored_weight(layer);
  if (!stored) return std::nullopt;
  return Rounded{.values = quant::dequantize_weight(*stored, threads),
                 .integers = stored->integers};
}

void add_weights(const tune::State& job, Simulator& simulator, std::vector<TensorRow>& rows) {
  const Graph& graph = simulator.model().graph;
  for (const Layer& layer : simulator.layers()) {
    const Tensor& real = *graph.constant(graph.find(layer.weight));
    const std::optional<Rounded> rounded = rounded_weight(job, simulator, layer, real);
    if (!rounded) continue;
    const std::vector<float> before = to_float(real);
    const std::vector<float> after = to_float(rounded->values);
    std::vector<float> difference(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) difference[i] = before[i] - after[i];
    TensorRow row{.name = layer.weight, .is_weight = true};
    row.real.add_sample(before);
    row.quantized.add_sample(after);
    row.difference.add_sample(difference);
    row.integers.add_sample(to_float(rounded->integers));
    rows.push_back(std::move(row));
  }
}

/// Every dequantised number is (integer - zero point) * scale, so what is known of the numbers is
/// known of the integers.
Statistic integers_of(const Statistic& numbers, const QuantParams& params) {
  Statistic integers;
  if (numbers.count == 0) return integers;
  const auto scale = static_cast<double>(params.scale.at(0));
  const auto zero = static_cast<double>(params.zero_point.at(0));
  const auto count = static_cast<double>(numbers.count);
  const double mean = numbers.mean() / scale + zero;
  integers.samples = numbers.samples;
  integers.count = numbers.count;
  integers.min = std::round(numbers.min / scale) + zero;
  integers.max = std::round(numbers.max / scale) + zero;
  integers.sum.add(mean * count);
  integers.sum_squares.add((numbers.variance() / (scale * scale) + mean * mean) * count);
  return integers;
}

/// Extremes, mean and spread of differences: nobody asks for more of them.
class Differences {
 public:
  Differences(std::size_t values, int workers)
      : parts_(static_cast<std::size_t>(workers), std::vector<Statistic>(values)) {}

  void add(const TapSample& sample) {
    Statistic& part = parts_[static_cast<std::size_t>(sample.worker)][sample.tap];
    const auto count = static_cast<std::int64_t>(sample.values.size());
    const observe::Summary seen = observe::summarize(sample.values.data(), count);
    ++part.samples;
    if (count == 0 || !std::isfinite(seen.sum_squares)) return;
    widen(part, static_cast<double>(seen.min), static_cast<double>(seen.max));
    part.count += count;
    part.sum.add(seen.sum);
    part.sum_squares.add(seen.sum_squares);
  }

  Statistic of(std::size_t value) const {
    Statistic whole;
    for (const std::vector<Statistic>& each : parts_) {
      const Statistic& part = each[value];
      whole.samples += part.samples;
      if (part.count == 0) continue;
      widen(whole, part.min, part.max);
      whole.count += part.count;
      whole.sum.add(part.sum);
      whole.sum_squares.add(part.sum_squares);
    }
    return whole;
  }

 private:
  static void widen(Statistic& statistic, double min, double max) {
    statistic.min = statistic.count == 0 ? min : std::min(statistic.min, min);
    statistic.max = statistic.count == 0 ? max : std::max(statistic.max, max);
  }
  std::vector<std::vector<Statistic>> parts_;  ///< by worker, then by value
};

/// One pass in which the float and the quantised model see the same samples.
void add_activations(const tune::State& job, Simulator& simulator, std::vector<TensorRow>& rows) {
  const QuantSolution& solution = job.solution;
  const Graph& graph = simulator.model().graph;
  std::set<std::string> inputs;
  for (const Layer& layer : simulator.layers()) inputs.insert(input_of(graph, layer));
  const Twin twin =
      make_twin(simulator.model(), simulator.quantized({}), {inputs.begin(), inputs.end()});
  Differences differences(twin.values.size(), job.context.num_threads());
  calibrate::CollectOptions how{.batch = job.options.batch, .count = num_row_samples(job)};
  how.integer = true;
  how.on_other = [&](const TapSample& sample) { differences.add(sample); };
  std::vector<std::string> names;
  std::map<std::string, std::size_t> places;
  for (const TwinValue& value : twin.values) {
    places[value.value] = names.size();
    names.push_back(value.quantized);
    how.others.push_back(value.difference);
  }
  // A job that calibrates has seen the float values already.
  std::vector<std::string> observed = names;
  for (const TwinValue& value : twin.values) {
    if (!simulator.statistics().contains(value.value)) observed.push_back(value.in_float);
  }
  const StatisticMap seen =
      calibrate::collect(twin.model, observed, job.samples.source(), how, job.context);
  for (const Layer& layer : simulator.layers()) {
    const std::string input = input_of(graph, layer);
    const std::size_t place = places.at(input);
    const Statistic& quantized = seen.at(names[place]);
    const auto params = solution.values.find(input);
    const auto known = simulator.statistics().find(input);
    rows.push_back(
        {.name = input,
         .weight = layer.weight,
         .real = known == simulator.statistics().end() ? seen.at(twin.values[place].in_float)
                                                       : known->second,
         .quantized = quantized,
         .difference = differences.of(place),
         .integers = params == solution.values.end() ? Statistic()
                                                     : integers_of(quantized, params->second)});
  }
}

}  // namespace

/// There is no validation set, except for a job that calibrates nothing: then it is all.
std::int64_t num_row_samples(const tune::State& job) {
  return job.samples.calibration().count + job.samples.validation().count;
}

std::vector<TensorRow> tensor_rows(const tune::State& job, Simulator& simulator) {
  std::vector<TensorRow> rows;
  add_activations(job, simulator, rows);
  add_weights(job, simulator, rows);
  return rows;
}

}  // namespace quench::analyze
