// SPDX-License-Identifier: Apache-2.0
// Adds nodes that take the channels' sizes, and reads them off: no value outlives its readers.
#include "tune/channel_stats.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "exec/runs_ahead.h"

namespace quench::tune {
namespace {

/// A model whose outputs are the sizes of some values.
class Probe {
 public:
  explicit Probe(const Model& model) : model_(model) { model_.graph.outputs.clear(); }

  void watch(const std::string& name) {
    const ValueId value = model_.graph.find(name);
    const auto& shape = model_.graph[value].type.shape;
    if (!shape || shape->size() < 2) return;
    const bool image = shape->size() > 2;
    const ValueId size = node("Abs", {value}, name);
    const ValueId square = node("Mul", {value, value}, name);
    outputs_[name] = {give(image ? node("GlobalMaxPool", {size}, name) : size),
                      give(image ? node("GlobalAveragePool", {square}, name) : square)};
  }

  struct Outputs {
    std::string abs_max;
    std::string mean_square;
  };
  const std::map<std::string, Outputs>& outputs() const { return outputs_; }
  const Model& model() const { return model_; }

 private:
  ValueId node(const char* op_type, std::vector<ValueId> inputs, const std::string& stem) {
    Node node;
    node.op_type = op_type;
    node.inputs = std::move(inputs);
    node.outputs = {model_.graph.add_fresh(format("{}/quench_{}", stem, op_type))};
    model_.graph.nodes.push_back(std::move(node));
    return model_.graph.nodes.back().outputs[0];
  }
  std::string give(ValueId value) {
    model_.graph.outputs.push_back(value);
    return model_.graph[value].name;
  }

  Model model_;
  std::map<std::string, Outputs> outputs_;
};

/// Calls visit(channel, number) for a tensor [N, C, ...].
template <typename Visit>
void for_each_channel(const Tensor& tensor, const Visit& visit) {
  const auto channels = static_cast<std::size_t>(tensor.shape().at(1));
  const std::vector<float> numbers = to_float(tensor);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    visit(i % channels, static_cast<double>(numbers[i]));
  }
}

void add(const Tensor& abs_max, const Tensor& mean_square, ChannelStats& stats) {
  const auto channels = static_cast<std::size_t>(abs_max.shape().at(1));
  stats.abs_max.resize(channels);
  stats.mean_square.resize(channels);
  for_each_channel(abs_max, [&](std::size_t c, double number) {
    if (std::isfinite(number)) stats.abs_max[c] = std::max(stats.abs_max[c], number);
  });
  for_each_channel(mean_square, [&](std::size_t c, double number) {
    if (std::isfinite(number)) stats.mean_square[c] += number;
  });
  stats.samples += static_cast<double>(abs_max.shape().at(0));
}

}  // namespace

std::map<std::string, ChannelStats> channel_stats(const Model& model,
                                                  const std::vector<std::string>& values,
                                                  std::span<const TensorMap> batches,
                                                  const Context& context) {
  Probe probe(model);
  for (const std::string& name : std::set<std::string>(values.begin(), values.end())) {
    probe.watch(name);
  }
  std::map<std::string, ChannelStats> result;
  if (probe.outputs().empty()) return result;
  Session session(probe.model(), {}, context);
  exec::RunsAhead runs(session, batches.size(), [&](std::size_t i) { return batches[i]; });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    context.check_cancelled();
    const TensorMap made = runs.next();
    for (const auto& [name, outputs] : probe.outputs()) {
      add(made.at(outputs.abs_max), made.at(outputs.mean_square), result[name]);
    }
  }
  for (auto& [name, stats] : result) {
    for (double& square : stats.mean_square) square /= stats.samples;
  }
  return result;
}

}  // namespace quench::tune
