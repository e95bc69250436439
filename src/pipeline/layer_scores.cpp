// SPDX-License-Identifier: Apache-2.0
// The error that each integer layer makes by itself.
#include "pipeline/layer_scores.h"

#include <algorithm>
#include <set>

#include "pipeline/scoring.h"

namespace quench {
namespace {

/// A layer of the float model: what it reads, and what its integer kernel hands on.
struct Layer {
  const Node* node = nullptr;
  std::vector<std::string> feeds;
  std::string result;
};

bool is_float(const Graph& graph, ValueId id) {
  return id != kNoValue && info(graph[id].type.dtype).is_float;
}

/// Integer nodes; the result of one that absorbs an activation is that of the activation.
std::vector<Layer> integer_layers(const Graph& graph, const QuantPlan& plan) {
  std::map<NodeId, NodeId> absorbed;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].absorbed_by >= 0)
      absorbed[plan.nodes[i].absorbed_by] = static_cast<NodeId>(i);
  }
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodePlan& decision = plan.nodes[i];
    if (decision.kind != NodePlan::Kind::Integer || decision.absorbed_by >= 0) continue;
    const Node& node = graph.nodes[i];
    const auto last = absorbed.find(static_cast<NodeId>(i));
    const Node& end =
        last == absorbed.end() ? node : graph.nodes[static_cast<std::size_t>(last->second)];
    if (end.outputs.empty() || !is_float(graph, end.outputs[0])) continue;
    Layer layer{.node = &node, .feeds = {}, .result = graph[end.outputs[0]].name};
    for (const ValueId input : node.inputs) {
      if (input != kNoValue && graph.constant(input) == nullptr) {
        layer.feeds.push_back(graph[input].name);
      }
    }
    if (!layer.feeds.empty()) layers.push_back(std::move(layer));
  }
  return layers;
}

/// Drops layers that the quantised model cannot run by themselves. A value that had to keep its
/// name, such as a graph output, is the end of its own grid there: readers of the integers cannot
/// be fed with it.
void drop_unreachable(std::vector<Layer>& layers, const Graph& quantised) {
  std::set<std::string> ends;
  for (const Node& node : quantised.nodes) {
    if (node.op_type == "DequantizeLinear") ends.insert(quantised[node.outputs[0]].name);
  }
  const auto missing = [&](const std::string& name) {
    return quantised.find(name) == kNoValue || ends.contains(name);
  };
  std::erase_if(layers, [&](const Layer& layer) {
    return std::ranges::any_of(layer.feeds, missing) || quantised.find(layer.result) == kNoValue;
  });
}

std::vector<std::string> names_in(const std::vector<Layer>& layers) {
  std::set<std::string> names;
  for (const Layer& layer : layers) {
    names.insert(layer.feeds.begin(), layer.feeds.end());
    names.insert(layer.result);
  }
  return {names.begin(), names.end()};
}

/// What a layer should have made, as far as its readers can tell.
Tensor as_read(const QuantPlan& plan, const std::string& value, Tensor want) {
  const auto planned = plan.values.find(value);
  if (planned == plan.values.end() || !planned->second.floor) return want;
  const auto floor = static_cast<float>(*planned->second.floor);
  std::vector<float> numbers = to_float(want);
  for (float& each : numbers) each = std::max(each, floor);
  return Tensor::of<float>(want.shape(), std::span<const float>(numbers));
}

LayerScore score(const Graph& graph, const Layer& layer, const Tensor& got, const Tensor& want) {
  ScoreCard card(layer.result, {"cosine", "sqnr"});
  card.add(got, want);
  const OutputScores scores = card.scores();
  return {.node = label(graph, *layer.node),
          .op_type = layer.node->op_type,
          .value = layer.result,
          .sqnr = scores.scores.at("sqnr"),
          .cosine = scores.scores.at("cosine")};
}

}  // namespace

std::vector<LayerScore> score_layers(const Job& job, const Model& quantised,
                                     const Context& context) {
  const std::int64_t size = run_size(*job.source, model_inputs(job.model.graph));
  const std::vector<TensorMap> runs = read_runs(job, {job.parts.calibrate, size}, size);
  if (job.parts.judge == 0 || runs.empty()) return {};
  // A layer has many values: one run tells its error well.
  const TensorMap& inputs = runs.front();
  const Graph& graph = job.model.graph;
  std::vector<Layer> all = integer_layers(graph, job.plan);
  drop_unreachable(all, quantised.graph);
  const std::vector<std::string> names = names_in(all);
  // Each layer is cut out of its surroundings, so nothing may be fused across its ends.
  Session actual(quantised, {.tap_all = true}, context);
  const TensorMap want = Session(job.model, {.taps = names}, context).run(inputs, names);
  std::vector<LayerScore> scores;
  for (const Layer& layer : all) {
    context.check_cancelled();
    TensorMap feeds;
    for (const std::string& name : layer.feeds) feeds[name] = want.at(name);
    const std::vector<std::string> wanted = {layer.result};
    Tensor got = actual.run(feeds, wanted).at(layer.result);
    const auto grid = job.solution.values.find(layer.result);
    if (grid != job.solution.values.end()) got = fake_quantize(got, grid->second);
    const Tensor should = as_read(job.plan, layer.result, want.at(layer.result));
    scores.push_back(score(graph, layer, got, should));
    context.report("judging layers", static_cast<std::int64_t>(scores.size()),
                   static_cast<std::int64_t>(all.size()));
  }
  return scores;
}

}  // namespace quench
