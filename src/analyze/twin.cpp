// SPDX-License-Identifier: Apache-2.0
// Two models in one graph.
#include "analyze/twin.h"

#include <functional>
#include <map>

#include "analyze/simulator.h"
#include "passes/rewriter.h"

namespace quench::analyze {
namespace {

/// Graphs inside a node read outer values by name: those of the copy.
void rename_captured(Node& node, const std::function<std::string(const std::string&)>& rename) {
  for (Graph* inner : passes::mutable_subgraphs(node)) {
    for (std::size_t i = 0; i < inner->values().size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if ((*inner)[id].captured) inner->rename(id, rename((*inner)[id].name));
    }
    for (Node& each : inner->nodes) rename_captured(each, rename);
  }
}

/// Copies the nodes of `source` into `graph` under names of their own; inputs are shared.
std::map<ValueId, ValueId> copy_nodes(const Graph& source, Graph& graph) {
  std::map<ValueId, ValueId> ids;
  for (const ValueId input : source.inputs) {
    if (const ValueId own = graph.find(source[input].name); own != kNoValue) ids[input] = own;
  }
  const auto map_id = [&](ValueId id) {
    if (id == kNoValue) return kNoValue;
    const auto known = ids.find(id);
    if (known != ids.end()) return known->second;
    const Value& value = source[id];
    const ValueId made = value.constant ? graph.add_constant("float:" + value.name, *value.constant)
                                        : graph.add_fresh("float:" + value.name, value.type);
    return ids[id] = made;
  };
  for (const Node& node : source.nodes) {
    Node copy = node;
    rename_captured(copy, [&](const std::string& name) {
      const ValueId id = source.find(name);  // else it lives in a graph between
      return id == kNoValue ? name : graph[map_id(id)].name;
    });
    copy.name = "float:" + node.name;
    for (ValueId& id : copy.inputs) id = map_id(id);
    for (ValueId& id : copy.outputs) id = map_id(id);
    graph.nodes.push_back(std::move(copy));
  }
  return ids;
}

Node make_node(std::string op, std::vector<ValueId> inputs, ValueId output) {
  Node node;
  node.op_type = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

}  // namespace

Twin make_twin(const Model& model, const Model& quantized, const std::vector<std::string>& values) {
  Model source = model;
  if (source.opset() < quantized.opset()) lift_opset(source, quantized.opset());
  Twin twin{.model = quantized, .values = {}};
  Graph& graph = twin.model.graph;
  const std::map<ValueId, ValueId> ids = copy_nodes(source.graph, graph);
  for (const std::string& value : values) {
    const ValueId own = ids.at(source.graph.find(value));
    const std::string seen = seen_as(quantized.graph, value);
    const ValueId difference = graph.add_fresh("difference:" + value);
    graph.nodes.push_back(make_node("Sub", {own, graph.find(seen)}, difference));
    // Its shape keeps the difference alive without handing all of it back.
    const ValueId kept = graph.add_fresh("shape:" + value);
    graph.nodes.push_back(make_node("Shape", {difference}, kept));
    graph.outputs.push_back(kept);
    twin.values.push_back({.value = value,
                           .in_float = graph[own].name,
                           .quantized = seen,
                           .difference = graph[difference].name});
  }
  infer_types(twin.model);
  return twin;
}

}  // namespace quench::analyze
