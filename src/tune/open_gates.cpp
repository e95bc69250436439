// SPDX-License-Identifier: Apache-2.0
// Opens and closes gates.
#include "tune/open_gates.h"

#include <utility>

namespace quench::tune {
namespace {

// HardSwish(x) = x * max(0, min(1, x / 6 + 0.5)).
constexpr float kAlpha = 1.0F / 6;
constexpr float kBeta = 0.5F;

bool is_hard_swish(const Node& node) { return node.domain.empty() && node.op_type == "HardSwish"; }

}  // namespace

std::vector<OpenedGate> open_gates(Model& model) {
  Graph& graph = model.graph;
  std::vector<OpenedGate> opened;
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    if (!is_hard_swish(node)) {
      nodes.push_back(std::move(node));
      continue;
    }
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    Node gate;
    gate.name = node.name + "_gate";
    gate.op_type = "HardSigmoid";
    gate.set("alpha", kAlpha);
    gate.set("beta", kBeta);
    gate.inputs = {x};
    gate.outputs = {graph.add_fresh(graph[y].name + "_gate", graph[y].type)};
    Node product;
    product.name = node.name;
    product.op_type = "Mul";
    product.inputs = {x, gate.outputs[0]};
    product.outputs = {y};
    opened.push_back({std::move(node), graph[x].name, graph[y].name});
    nodes.push_back(std::move(gate));
    nodes.push_back(std::move(product));
  }
  graph.nodes = std::move(nodes);
  return opened;
}

void close_gates(Model& model, const std::vector<OpenedGate>& opened) {
  Graph& graph = model.graph;
  const Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  for (const OpenedGate& each : opened) {
    const ValueId output = graph.find(each.output);
    const NodeId product = uses.producer[static_cast<std::size_t>(output)];
    Node& whole = graph.nodes[static_cast<std::size_t>(product)];
    const NodeId gate = uses.producer[static_cast<std::size_t>(whole.inputs[1])];
    const ValueId input = graph.find(each.input);
    if (graph.nodes[static_cast<std::size_t>(gate)].inputs[0] != input) continue;
    whole = each.node;
    whole.inputs = {input};
    whole.outputs = {output};
    dead[static_cast<std::size_t>(gate)] = true;
  }
  compact(graph, dead);
}

}  // namespace quench::tune
