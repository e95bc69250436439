// SPDX-License-Identifier: Apache-2.0
// Turns operators between Q/DQ nodes into integer ones.
#include <algorithm>

#include "exec/rewrites/integer.h"

namespace quench::exec::rewrites {

std::optional<Quantiser> quantiser_behind(const Rewriter& rewriter, ValueId value) {
  const NodeId next = rewriter.next(value);
  const Node* node = rewriter.as(next, "QuantizeLinear");
  if (node == nullptr || node->inputs[0] != value) return std::nullopt;
  const auto params = params_of(rewriter, *node);
  if (!params || !params->per_tensor) return std::nullopt;
  return Quantiser{.node = next, .params = *params};
}

bool same_shape(const ValueType& a, const ValueType& b) {
  if (!a.shape || !b.shape || *a.shape != *b.shape) return false;
  return std::ranges::all_of(*a.shape,
                             [](const Dim& dim) { return dim.known() || !dim.symbol.empty(); });
}

Node engine_node(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
                 std::vector<ValueId> outputs) {
  Node node;
  node.name = name;
  node.op_type = op;
  node.domain = kEngineDomain;
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

namespace {

/// Of several QuantizeLinear nodes of one value with the same parameters, the first serves all.
void join_equal_quantisers(Rewriter& rewriter) {
  std::unordered_map<ValueId, std::vector<NodeId>> seen;
  for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
    const Node* node = rewriter.as(id, "QuantizeLinear");
    if (node == nullptr || node->input(0) == kNoValue) continue;
    const auto params = params_of(rewriter, *node);
    if (!params) continue;
    std::vector<NodeId>& others = seen[node->inputs[0]];
    const auto twin = std::ranges::find_if(others, [&](NodeId other) {
      return same_params(rewriter, *params, *params_of(rewriter, rewriter.node(other)));
    });
    if (twin == others.end()) {
      others.push_back(id);
    } else if (rewriter.may_rename(rewriter.result(id))) {
      rewriter.merge(rewriter.result(id), rewriter.result(*twin), id);
    }
  }
}

/// DequantizeLinear followed by QuantizeLinear with the same parameters: nothing happens.
bool cancel(Rewriter& rewriter, NodeId id) {
  const Node* node = rewriter.as(id, "QuantizeLinear");
  const auto from = node == nullptr ? std::nullopt : dequantised(rewriter, node->inputs[0]);
  const auto to = from ? params_of(rewriter, *node) : std::nullopt;
  if (!to || !same_params(rewriter, from->params, *to)) return false;
  const ValueId out = rewriter.result(id);
  if (!rewriter.may_rename(out)) return false;
  rewriter.merge(out, from->value, id);
  return true;
}

bool is_conversion(const Node& node) {
  return node.domain.empty() &&
         (node.op_type == "DequantizeLinear" || node.op_type == "QuantizeLinear" ||
          node.op_type == "DynamicQuantizeLinear");
}

void remove_unread(Rewriter& rewriter) {
  for (NodeId id = rewriter.num_nodes() - 1; id >= 0; --id) {
    if (!rewriter.alive(id) || !is_conversion(rewriter.node(id))) continue;
    const auto& outputs = rewriter.node(id).outputs;
    if (std::ranges::all_of(outputs, [&](ValueId out) { return rewriter.unread(out); })) {
      rewriter.remove(id);
    }
  }
}

bool has_quantisation(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, is_conversion);
}

void sweep(Rewriter& rewriter) {
  if (!has_quantisation(rewriter.graph())) return;
  join_equal_quantisers(rewriter);
  for (NodeId id = rewriter.num_nodes() - 1; id >= 0; --id) {
    if (rewriter.alive(id)) quantise_before_move(rewriter, id);
  }
  for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
    if (rewriter.alive(id)) integer_move(rewriter, id);
    if (rewriter.alive(id)) cancel(rewriter, id);
  }
  using Rule = bool (*)(Rewriter&, NodeId);
  const auto apply = [&](Rule rule) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) rule(rewriter, id);
    }
  };
  for (const Rule rule : {integer_layer, integer_dynamic, integer_table, integer_arithmetic}) {
    apply(rule);
  }
  // From the end, so that each takes as much as it can.
  for (NodeId id = rewriter.num_nodes() - 1; id >= 0; --id) {
    if (rewriter.alive(id)) float_table(rewriter, id);
  }
  remove_unread(rewriter);
  apply(integer_residual);
}

}  // namespace

PassReport fuse_integer(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, sweep);
}

}  // namespace quench::exec::rewrites
