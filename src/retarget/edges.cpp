// SPDX-License-Identifier: Apache-2.0
// Puts Q or DQ nodes at the ends of a graph, and takes out pairs that undo each other.
#include "retarget/edges.h"

#include <algorithm>

#include "base/format.h"
#include "lower/params.h"
#include "plan/facts.h"
#include "plan/qdq.h"
#include "quench/plan.h"
#include "retarget/params_of.h"

namespace quench::retargeting {
namespace {

/// A graph whose ends change their type.
class Ends {
 public:
  explicit Ends(Graph& graph) : graph_(graph) {}

  /// Puts a node between an end and the graph: a DequantizeLinear where the end becomes integers
  /// that come in, and so on. Returns the value at the inner side.
  ValueId put(const IntegerEdge& edge, bool to_integers) {
    const ValueId inner = graph_.find(edge.name);
    if (inner == kNoValue) {
      fail(ErrorKind::Internal, "the model has lost its input or output '{}'", edge.name);
    }
    ValueType type = graph_[inner].type;
    type.dtype = to_integers ? edge.params.spec.dtype() : DType::Float32;
    graph_.rename(inner, fresh_name(edge.name + (to_integers ? "_float" : "_integers")));
    const ValueId end = graph_.add_fresh(edge.name, std::move(type));
    auto& list = edge.is_output ? graph_.outputs : graph_.inputs;
    std::ranges::replace(list, inner, end);
    Node node;
    node.op_type = to_integers == edge.is_output ? "QuantizeLinear" : "DequantizeLinear";
    node.name = edge.name + "_" + node.op_type;
    node.inputs = {edge.is_output ? inner : end,
                   graph_.add_constant(edge.name + "_scale", lower::scale_tensor(edge.params)),
                   graph_.add_constant(edge.name + "_zero_point", lower::zero_tensor(edge.params))};
    node.outputs = {edge.is_output ? end : inner};
    graph_.nodes.insert(edge.is_output ? graph_.nodes.end() : graph_.nodes.begin(),
                        std::move(node));
    return inner;
  }

  /// What only moves an input moves its integers. Returns what it is dequantised to in the end.
  ValueId sink(const IntegerEdge& edge, ValueId inner) {
    constexpr int kMost = 8;
    for (int step = 0; step < kMost; ++step) {
      const Uses uses(graph_);
      const NodeId reader = uses.only_consumer(inner);
      const NodeId maker = uses.producer[static_cast<std::size_t>(inner)];
      if (reader < 0 || maker < 0) return inner;
      Node& mover = graph_.nodes[static_cast<std::size_t>(reader)];
      Node& dequantize = graph_.nodes[static_cast<std::size_t>(maker)];
      if (!ops::is(mover, ops::kMoves) || mover.input(0) != inner || mover.outputs.size() != 1 ||
          uses.is_output[static_cast<std::size_t>(mover.outputs[0])]) {
        return inner;
      }
      ValueType type = graph_[mover.outputs[0]].type;
      type.dtype = edge.params.spec.dtype();
      const ValueId floats = mover.outputs[0];
      const ValueId moved = graph_.add_fresh(graph_[floats].name + "_integers", std::move(type));
      mover.inputs[0] = dequantize.inputs[0];
      mover.outputs[0] = moved;
      dequantize.inputs[0] = moved;
      dequantize.outputs[0] = floats;
      std::rotate(graph_.nodes.begin() + maker, graph_.nodes.begin() + maker + 1,
                  graph_.nodes.begin() + reader + 1);
      inner = floats;
    }
    return inner;
  }

  /// Readers of an input that would round it to the integers that it was.
  void join_input(const IntegerEdge& edge, ValueId inner) {
    const NodeId maker = Uses(graph_).producer[static_cast<std::size_t>(inner)];
    const ValueId integers = graph_.nodes[static_cast<std::size_t>(maker)].inputs[0];
    for (Node& node : graph_.nodes) {
      if (!plan::is_q(&node) || node.input(0) != inner || !fits(node, edge)) continue;
      replace_uses(graph_, node.outputs[0], integers);
    }
  }

  /// An output whose integers are at hand.
  void join_output(const IntegerEdge& edge, ValueId inner) {
    const ValueId end = graph_.find(edge.name);
    const auto maker = std::ranges::find_if(graph_.nodes, [&](const Node& node) {
      return std::ranges::count(node.outputs, inner) != 0;
    });
    if (maker == graph_.nodes.end() || !plan::is_dq(&*maker) || !fits(*maker, edge)) return;
    const ValueId integers = maker->inputs[0];
    if (std::ranges::count(graph_.inputs, integers) != 0) return;
    std::ranges::replace(graph_.outputs, end, integers);
    graph_.rename(end, fresh_name(edge.name + "_copy"));
    graph_.rename(integers, edge.name);
  }

  /// Removes what nothing reads any more, the last first.
  void tidy() {
    const Uses uses(graph_);
    std::vector<std::size_t> readers(graph_.values().size());
    for (std::size_t i = 0; i < readers.size(); ++i) readers[i] = uses.consumers[i].size();
    std::vector<bool> dead(graph_.nodes.size(), false);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!plan::is_q(&node) && !plan::is_dq(&node)) continue;
      const auto out = static_cast<std::size_t>(node.outputs[0]);
      dead[i] = readers[out] == 0 && !uses.is_output[out];
      if (dead[i]) --readers[static_cast<std::size_t>(node.inputs[0])];
    }
    compact(graph_, dead);
  }

 private:
  bool fits(const Node& node, const IntegerEdge& edge) const {
    const auto params = params_of(graph_, node);
    return params && same_integers(*params, edge.params);
  }

  std::string fresh_name(const std::string& stem) const {
    std::string name = stem;
    for (int i = 1; graph_.find(name) != kNoValue; ++i) name = format("{}_{}", stem, i);
    return name;
  }

  Graph& graph_;
};

/// The scale that a value is rounded to, maybe after it was moved.
std::optional<QuantParams> params_behind(const Graph& graph, const Uses& uses, ValueId value) {
  constexpr int kMost = 8;
  for (int step = 0; step < kMost; ++step) {
    ValueId moved = kNoValue;
    for (const NodeId id : uses.consumers[static_cast<std::size_t>(value)]) {
      const Node& node = graph.nodes[static_cast<std::size_t>(id)];
      if (plan::is_q(&node)) return params_of(graph, node);
      if (ops::is(node, ops::kMoves) && node.input(0) == value) moved = node.outputs[0];
    }
    if (moved == kNoValue) return std::nullopt;
    value = moved;
  }
  return std::nullopt;
}

}  // namespace

std::vector<IntegerEdge> find_edges(const Graph& graph) {
  const Uses uses(graph);
  std::vector<IntegerEdge> edges;
  const auto add = [&](ValueId id, const std::optional<QuantParams>& params, bool is_output) {
    if (!params || params->spec.axis >= 0) return;
    edges.push_back({.name = graph[id].name, .params = *params, .is_output = is_output});
  };
  for (const ValueId id : graph.inputs) {
    if (!graph[id].constant) add(id, params_behind(graph, uses, id), false);
  }
  for (const ValueId id : graph.outputs) {
    const NodeId maker = uses.producer[static_cast<std::size_t>(id)];
    if (maker < 0) continue;
    const Node& node = graph.nodes[static_cast<std::size_t>(maker)];
    if (plan::is_dq(&node)) add(id, params_of(graph, node), true);
  }
  return edges;
}

void restore_edges(Model& model, const std::vector<IntegerEdge>& edges) {
  if (edges.empty()) return;
  Ends ends(model.graph);
  for (const IntegerEdge& edge : edges) {
    const ValueId inner = ends.put(edge, true);
    if (edge.is_output) {
      ends.join_output(edge, inner);
    } else {
      ends.join_input(edge, ends.sink(edge, inner));
    }
  }
  ends.tidy();
  infer_types(model);
  verify(model);
}

std::size_t drop_idle_activations(Model& model, const std::set<std::string>& results) {
  Graph& graph = model.graph;
  const Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  std::size_t stay = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.outputs.empty() || !results.contains(output_name(graph, node))) continue;
    const NodeId reader = uses.only_consumer(node.outputs[0]);
    const auto bounds = plan::activation_bounds(graph, node, model.opset());
    if (reader < 0 || !bounds) continue;
    Node& q = graph.nodes[static_cast<std::size_t>(reader)];
    dead[i] = plan::is_q(&q) && plan::scale_within(graph, q, *bounds);
    if (dead[i]) q.inputs[0] = node.inputs[0];
  }
  for (std::size_t i = 0; i < dead.size(); ++i) {
    const std::vector<ValueId>& made = graph.nodes[i].outputs;
    if (!dead[i] && !made.empty() && results.contains(output_name(graph, graph.nodes[i]))) ++stay;
  }
  compact(graph, dead);
  return stay;
}

Model with_float_edges(Model model, const std::vector<IntegerEdge>& edges) {
  Ends ends(model.graph);
  for (const IntegerEdge& edge : edges) ends.put(edge, false);
  infer_types(model);
  return model;
}

}  // namespace quench::retargeting
