// SPDX-License-Identifier: Apache-2.0
// The error of each integer layer: its own, and with those of the layers before it.
#include "analyze/layer_scores.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>

#include "analyze/simulator.h"
#include "analyze/workers.h"
#include "evaluate/random_inputs.h"
#include "evaluate/scoring.h"
#include "passes/part_of.h"
#include "plan/facts.h"

namespace quench::analyze {
namespace {

/// A layer of the float model: what it reads, and what its integer kernel hands on.
struct IntegerLayer {
  const Node* node = nullptr;
  std::vector<std::string> feeds;
  std::string result;
};

bool is_float(const Graph& graph, ValueId id) {
  return id != kNoValue && info(graph[id].type.dtype).is_float;
}

/// Integer nodes; the result of one that absorbs an activation is that of the activation.
std::vector<IntegerLayer> integer_layers(const Graph& graph, const QuantPlan& plan) {
  std::vector<IntegerLayer> layers;
  for (const Node& node : graph.nodes) {
    const NodePlan& decision = plan.of(graph, node);
    if (decision.kind != NodePlan::Kind::Integer || !decision.absorbed_by.empty()) continue;
    IntegerLayer layer{
        .node = &node, .feeds = {}, .result = plan.result_of(output_name(graph, node))};
    if (!is_float(graph, graph.find(layer.result))) continue;
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
/// name, such as a graph output, is the end of its own scale there: readers of the integers cannot
/// be fed with it.
void drop_unreachable(std::vector<IntegerLayer>& layers, const Graph& quantised) {
  std::set<std::string> ends;
  for (const Node& node : quantised.nodes) {
    if (node.op_type == "DequantizeLinear") ends.insert(quantised[node.outputs[0]].name);
  }
  const auto missing = [&](const std::string& name) {
    return quantised.find(name) == kNoValue || ends.contains(name);
  };
  std::erase_if(layers, [&](const IntegerLayer& layer) {
    return std::ranges::any_of(layer.feeds, missing) || quantised.find(layer.result) == kNoValue;
  });
}

/// Where the effect of a layer on the outputs is seen. How often a loop runs hangs on what it
/// reads, and outputs of other lengths cannot be compared: for layers before a loop what it reads
/// stands for what lies behind.
class Ends {
 public:
  explicit Ends(const Graph& graph) : graph_(graph), outputs_(float_output_names(graph)) {
    std::set<std::string> fronts;
    for (const Node& node : graph.nodes) {
      const std::vector<ValueId> inputs = passes::values_read(graph, node);
      const bool inside =
          std::ranges::any_of(inputs, [&](ValueId id) { return behind_.contains(id); });
      const bool loop = node.op_type == "Loop";
      if (!loop && !inside) continue;
      behind_.insert(node.outputs.begin(), node.outputs.end());
      for (const ValueId id : inputs) {
        const bool front = loop && !behind_.contains(id) && is_float(graph, id);
        if (front && graph.constant(id) == nullptr) fronts.insert(graph[id].name);
      }
    }
    for (const std::string& name : outputs_) {
      if (!behind_.contains(graph.find(name))) fronts.insert(name);
    }
    before_loops_.assign(fronts.begin(), fronts.end());
  }

  std::set<std::string> all() const {
    std::set<std::string> names(outputs_.begin(), outputs_.end());
    names.insert(before_loops_.begin(), before_loops_.end());
    return names;
  }

  /// For a layer that makes `value`.
  const std::vector<std::string>& of(const std::string& value) const {
    return behind_.contains(graph_.find(value)) ? outputs_ : before_loops_;
  }

 private:
  const Graph& graph_;
  std::vector<std::string> outputs_;
  std::vector<std::string> before_loops_;
  std::set<ValueId> behind_;  ///< values behind a loop
};

/// What layers read and make, and the ends.
std::vector<std::string> names_in(const Ends& ends, const std::vector<IntegerLayer>& layers) {
  std::set<std::string> names = ends.all();
  for (const IntegerLayer& layer : layers) {
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

/// SQNR and cosine of a layer's result.
std::map<std::string, double> score(const IntegerLayer& layer, const Tensor& got,
                                    const Tensor& want) {
  ScoreCard card(layer.result, {"cosine", "sqnr"});
  card.add(got, want);
  return card.scores().scores;
}

/// The layer's result when it alone is quantised.
Tensor alone(Session& session, const IntegerLayer& layer, const TensorMap& floats,
             const QuantSolution& solution) {
  TensorMap feeds;
  for (const std::string& name : layer.feeds) feeds[name] = floats.at(name);
  const std::vector<std::string> wanted = {layer.result};
  Tensor got = session.run(feeds, wanted).at(layer.result);
  const auto params = solution.values.find(layer.result);
  return params == solution.values.end() ? got : fake_quantize(got, params->second);
}

/// What layers' own errors do to the outputs: the float model goes on from their results.
class OutputEffects {
 public:
  OutputEffects(const Graph& graph, const Ends& ends, const TensorMap& floats)
      : graph_(graph), uses_(graph), ends_(ends), floats_(floats) {}

  /// The float model behind a layer.
  struct Behind {
    double worst = std::numeric_limits<double>::infinity();  ///< SQNR in dB of an end, so far
    RunRequest run;
  };

  /// For a layer that made `quantized` of `value`.
  Behind behind(const std::string& value, const Tensor& quantized, const Session& session) const {
    const NodeId maker = producer(value);
    TensorMap feeds;
    // Nodes are in an order in which they can run: what was made before does not depend on it.
    for (const auto& [name, tensor] : floats_) {
      if (producer(name) < maker) feeds[name] = tensor;
    }
    feeds[value] = quantized;
    Behind result;
    for (const std::string& end : ends_.of(value)) {
      if (!feeds.contains(end)) result.run.wanted.push_back(end);
      if (end == value) result.worst = std::min(result.worst, sqnr(quantized, floats_.at(end)));
    }
    if (!result.run.wanted.empty()) result.run.feeds = session.enter(feeds);
    return result;
  }

  /// SQNR of the worst output in dB, by layer.
  std::vector<double> worst(std::span<const Behind> layers, Session& session) const {
    std::vector<double> result;
    std::vector<RunRequest> runs;
    std::vector<std::size_t> waiting;
    for (const Behind& layer : layers) {
      if (!layer.run.wanted.empty()) {
        waiting.push_back(result.size());
        runs.push_back(layer.run);
      }
      result.push_back(layer.worst);
    }
    const std::vector<EngineValues> made = session.compute_all(runs);
    for (std::size_t i = 0; i < made.size(); ++i) {
      for (const auto& [end, tensor] : session.leave(made[i])) {
        result[waiting[i]] = std::min(result[waiting[i]], sqnr(tensor, floats_.at(end)));
      }
    }
    return result;
  }

 private:
  NodeId producer(const std::string& value) const {
    return uses_.producer[static_cast<std::size_t>(graph_.find(value))];
  }
  static double sqnr(const Tensor& got, const Tensor& want) {
    const auto metric = make_metric("sqnr");
    metric->add(got, want);
    return metric->value();
  }

  const Graph& graph_;
  Uses uses_;
  const Ends& ends_;
  const TensorMap& floats_;
};

}  // namespace

std::vector<LayerScore> score_layers(const tune::State& state, const Model& quantized) {
  if (!state.validation.able()) return {};
  const std::int64_t size = state.samples.run_size();
  const auto runs = state.samples.read({state.samples.validation().first, size}, size);
  // A layer has many values: one run tells its error well.
  const TensorMap& inputs = runs.front();
  const Graph& graph = state.model.graph;
  std::vector<IntegerLayer> all = integer_layers(graph, state.plan);
  drop_unreachable(all, quantized.graph);
  const Ends ends(graph);
  const std::vector<std::string> names = names_in(ends, all);
  // Each layer is cut out of its surroundings, so nothing may be fused across its ends.
  Session actual(quantized, {.tap_all = true}, state.context);
  Workers floats(state.model, {.taps = names}, state.context);
  TensorMap want = floats.whole().run(inputs, names);
  want.insert(inputs.begin(), inputs.end());
  std::vector<std::string> seen;
  for (const IntegerLayer& layer : all) seen.push_back(seen_as(quantized.graph, layer.result));
  const TensorMap accumulated = actual.run(inputs, seen);
  const OutputEffects effects(graph, ends, want);
  std::vector<LayerScore> scores(all.size());
  std::mutex mutex;
  std::int64_t done = 0;
  const auto score_one = [&](std::size_t i, const Session& session) {
    const IntegerLayer& layer = all[i];
    const Tensor should = as_read(state.plan, layer.result, want.at(layer.result));
    std::unique_lock lock(mutex);
    const Tensor own = alone(actual, layer, want, state.solution);
    lock.unlock();
    const auto by_itself = score(layer, own, should);
    const auto with_others = score(layer, accumulated.at(seen[i]), should);
    scores[i] = {.node = plan::key_of(graph, *layer.node),
                 .op_type = layer.node->op_type,
                 .value = layer.result,
                 .own_sqnr = by_itself.at("sqnr"),
                 .own_cosine = by_itself.at("cosine"),
                 .accumulated_sqnr = with_others.at("sqnr"),
                 .accumulated_cosine = with_others.at("cosine")};
    return effects.behind(layer.result, own, session);
  };
  const std::size_t together = floats.whole().runs_together();
  floats.run((all.size() + together - 1) / together, [&](Session& session, std::size_t block) {
    const std::size_t begin = block * together;
    const std::size_t end = std::min(begin + together, all.size());
    std::vector<OutputEffects::Behind> behind;
    for (std::size_t i = begin; i < end; ++i) behind.push_back(score_one(i, session));
    const std::vector<double> worst = effects.worst(behind, session);
    for (std::size_t i = begin; i < end; ++i) scores[i].output_sqnr = worst[i - begin];
    const std::lock_guard lock(mutex);
    done += static_cast<std::int64_t>(end - begin);
    state.context.report("evaluating layers", done, static_cast<std::int64_t>(all.size()));
  });
  return scores;
}

}  // namespace quench::analyze
