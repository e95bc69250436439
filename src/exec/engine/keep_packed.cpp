// SPDX-License-Identifier: Apache-2.0
// Finds the products whose weights stay packed.
#include "exec/engine/keep_packed.h"

#include <optional>

#include "exec/engine/expand_weights.h"
#include "exec/rewrites/rewrite.h"
#include "ops/facts.h"

namespace quench::exec {
namespace {

/// How a product reads its weight.
struct Use {
  NodeId node = -1;
  std::size_t operand = 0;  ///< which input is not the weight
  std::size_t added = 0;    ///< which input is added to the product; 0: none
  int rows = 0;             ///< axis of the weight along which it may be tiled
  int out_axis = -1;        ///< axis of the result that this becomes
  bool tiles = true;        ///< it may be tiled at all
};

bool is_own(const Node& node) { return node.domain.empty() || node.domain == "ai.onnx"; }

std::optional<Use> use_of(const Graph& graph, NodeId id, ValueId weight, const Shape& shape) {
  const Node& node = graph.nodes[static_cast<std::size_t>(id)];
  if (node.outputs.size() != 1) return std::nullopt;
  const ops::WeightKind kind = ops::facts(node).weight;
  if (kind == ops::WeightKind::Table && node.input(0) == weight && node.get_int("axis", 0) == 0) {
    return Use{.node = id, .operand = 1};
  }
  if (node.input(1) != weight || node.input(0) == weight || node.input(2) == weight) {
    return std::nullopt;
  }
  const auto layout = ops::weight_layout(node, 1, shape);
  if (!layout) return std::nullopt;
  if (kind == ops::WeightKind::Convolution) {
    return Use{.node = id, .added = 2, .rows = 0, .out_axis = 1, .tiles = layout->groups == 1};
  }
  if (kind != ops::WeightKind::Matrix || shape.size() != 2 || node.get_int("transA", 0) != 0) {
    return std::nullopt;
  }
  const int bias = ops::facts(node).bias;
  return Use{.node = id,
             .added = static_cast<std::size_t>(bias < 0 ? 0 : bias),
             .rows = layout->channel_axis};
}

/// Scales must run along the rows, or in blocks along the other axis of a matrix.
bool fits(const quant::QuantWeight& weight, const Use& use) {
  if (weight.spec.axis < 0) return true;
  if (weight.spec.block > 0) return weight.integers.rank() == 2 && weight.spec.axis != use.rows;
  return weight.spec.axis == use.rows;
}

std::string_view name_of(ops::WeightKind kind) {
  if (kind == ops::WeightKind::Table) return "table";
  return kind == ops::WeightKind::Matrix ? "matrix" : "convolution";
}

/// The product alone, of two values that are not constant.
Graph body_of(const Graph& graph, const Node& product, const Use& use, const Shape& shape) {
  Graph body;
  Value x;
  x.name = "on_the_fly_x";  // no name of the outer graph may come again inside
  x.type = graph[product.inputs[use.operand]].type;
  Value w;
  w.name = "on_the_fly_w";
  const bool is_conv = ops::is_convolution(product);
  std::vector<Dim> dims;
  if (is_conv) {
    for (const std::int64_t size : shape) dims.push_back({size, ""});
    dims[0] = {};  // tiles differ
  } else {
    dims = {{shape[use.rows == 0 ? 1 : 0], ""}, {}};
  }
  w.type = ValueType::tensor(DType::Float32, dims);
  body.inputs = {body.add_value(x), body.add_value(w)};
  Node& node = body.add_node(is_conv ? product.op_type : "MatMul", body.inputs, {"on_the_fly_y"});
  if (is_conv) node.attributes = product.attributes;
  body.outputs = node.outputs;
  return body;
}

void rewrite(Graph& graph, const Node& dequantize, const quant::QuantWeight& weight,
             const Use& use) {
  Node& product = graph.nodes[static_cast<std::size_t>(use.node)];
  Node joined;
  joined.name = product.name;
  joined.op_type = "OnTheFly";
  joined.domain = kEngineDomain;
  joined.inputs =
      OnTheFlyNode{.operand = product.inputs[use.operand],
                   .weight = {dequantize.input(0), dequantize.input(1), dequantize.input(2)},
                   .added = use.added == 0 ? kNoValue : product.input(use.added)}
          .inputs();
  joined.outputs = product.outputs;
  const ops::WeightKind kind = ops::facts(product).weight;
  joined.set("product", std::string(name_of(kind)));
  joined.set("rows", std::int64_t{use.rows});
  joined.set("out_axis", std::int64_t{use.out_axis});
  joined.set("tiles", std::int64_t{use.tiles ? 1 : 0});
  joined.set("block", weight.spec.axis < 0 ? std::int64_t{0} : weight.spec.block);
  if (kind == ops::WeightKind::Matrix) {
    joined.set("alpha", product.get_float("alpha", 1.0F));
    joined.set("beta", product.get_float("beta", 1.0F));
  }
  if (kind != ops::WeightKind::Table) {
    joined.set("body", GraphBox(body_of(graph, product, use, weight.integers.shape())));
  }
  product = std::move(joined);
}

}  // namespace

void keep_packed(Graph& graph, const passes::PassOptions& keep) {
  const Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node node = graph.nodes[i];
    if (node.op_type != "DequantizeLinear" || !is_own(node) || node.outputs.size() != 1) continue;
    const ValueId out = node.outputs[0];
    const NodeId reader = uses.only_consumer(out);
    if (reader < 0 || keep.keep.contains(graph[out].name) || !read_in_float(graph, uses, out)) {
      continue;
    }
    const auto weight = weight_of(graph, node);
    if (!weight || weight->integers.size() == 0) continue;
    const auto use = use_of(graph, reader, out, weight->integers.shape());
    if (!use || !fits(*weight, *use)) continue;
    rewrite(graph, node, *weight, *use);
    dead[i] = true;
  }
  compact(graph, dead);
}

}  // namespace quench::exec
