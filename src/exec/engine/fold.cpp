// SPDX-License-Identifier: Apache-2.0
// Constant folding: what does not depend on the inputs is computed once.
#include <algorithm>
#include <array>

#include "exec/engine/bridge.h"
#include "exec/engine/program.h"

namespace quench::exec {
namespace {

/// A folded result may be this much larger than its inputs; beyond, memory is worth more than time.
constexpr std::int64_t kMaxGrowth = std::int64_t{16} << 20;

bool may_fold(const Graph& graph, const Node& node) {
  static constexpr std::array kNever = {"RandomNormal",      "RandomUniform", "RandomNormalLike",
                                        "RandomUniformLike", "Bernoulli",     "Multinomial",
                                        "Dropout",           "QuantizeLinear"};
  if (std::ranges::find(kNever, node.op_type) != kNever.end()) return false;
  // Quantised weights stay as they are: the integer kernels want them.
  if (node.op_type == "DequantizeLinear" || !subgraphs(node).empty()) return false;
  return std::ranges::all_of(node.inputs, [&](ValueId id) {
    const Tensor* constant = graph.constant(id);
    return id == kNoValue || (constant != nullptr && scalar_type(constant->dtype()));
  });
}

/// A graph of this node alone, with constants for inputs.
Graph alone(const Graph& graph, const Node& node) {
  Graph result;
  Node copy = node;
  for (ValueId& id : copy.inputs) {
    if (id == kNoValue) continue;
    const ValueId known = result.find(graph[id].name);
    id = known != kNoValue ? known : result.add_value(graph[id]);
  }
  for (ValueId& id : copy.outputs) {
    if (id == kNoValue) continue;
    id = result.add_value(graph[id]);
    result.outputs.push_back(id);
  }
  result.nodes.push_back(std::move(copy));
  return result;
}

bool fold(Graph& graph, const Node& node, const CompileOptions& options) {
  std::vector<UnsupportedNode> unsupported;
  std::int64_t bytes_in = 0;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) bytes_in += static_cast<std::int64_t>(graph.constant(id)->bytes().size());
  }
  Program program(alone(graph, node), {.opsets = options.opsets, .fast = false}, unsupported);
  if (!unsupported.empty()) return false;  // reported once, when the whole graph is compiled
  std::vector<at::Tensor> results = program.run({});
  std::size_t next = 0;
  for (const at::Tensor& result : results) {
    if (!result.defined() || static_cast<std::int64_t>(result.nbytes()) > bytes_in + kMaxGrowth) {
      return false;
    }
  }
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    // A copy: the result may share memory with a larger tensor.
    Tensor value = from_torch(results[next++].clone());
    graph[id].type = ValueType::of(value);
    graph[id].constant = std::move(value);
  }
  return true;
}

}  // namespace

void fold_constants(Graph& graph, const CompileOptions& options) {
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node node = graph.nodes[i];
    if (may_fold(graph, node)) dead[i] = fold(graph, node, options);
  }
  compact(graph, dead);
}

}  // namespace quench::exec
