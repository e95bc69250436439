// SPDX-License-Identifier: Apache-2.0
// Constant folding: what does not depend on the inputs is computed once.
#include <algorithm>

#include "exec/engine/bridge.h"
#include "exec/engine/program.h"
#include "ops/facts.h"

namespace quench::exec {
namespace {

/// A folded result may be this much larger than its inputs; beyond, memory is worth more than time.
constexpr std::uint64_t kMaxGrowth = std::uint64_t{16} << 20;

bool may_fold(const Graph& graph, const Node& node) {
  // Quantised weights stay as they are: the integer kernels want them.
  if (node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear") return false;
  // No exporter feeds what is heavy with constants only.
  if (ops::is(node, ops::kRandom) || ops::is(node, ops::kHeavy)) return false;
  if (!subgraphs(node).empty()) return false;
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

std::uint64_t bytes_of_inputs(const Graph& graph, const Node& node) {
  std::uint64_t bytes = 0;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) bytes += graph.constant(id)->num_bytes();
  }
  return bytes;
}

/// Whether the results are known to be small enough, before anything is computed: a few numbers in
/// a file can ask for any amount of memory.
bool fits(const Graph& single, const Node& node, std::uint64_t max_bytes) {
  // What these make depends on the elements, but is never more than indices of all of them.
  static constexpr std::array kBounded = {"NonZero", "Compress", "Unique"};
  if (std::ranges::find(kBounded, node.op_type) != kBounded.end()) return true;
  return std::ranges::all_of(single.outputs, [&](ValueId id) {
    const ValueType& type = single[id].type;
    const auto shape = type.static_shape();
    const auto count = shape ? num_elements(*shape) : std::nullopt;
    const DType dtype = type.dtype == DType::Undefined ? DType::Float64 : type.dtype;
    const auto bytes = count ? num_bytes(dtype, *count) : std::nullopt;
    return bytes && *bytes <= max_bytes;
  });
}

bool fold(Graph& graph, const Node& node, const CompileOptions& options) {
  std::vector<UnsupportedNode> unsupported;
  Model single{.graph = alone(graph, node), .opsets = options.opsets};
  // Inputs that were folded just now may tell more of the outputs than was known before.
  infer_types(single);
  if (!fits(single.graph, node, bytes_of_inputs(graph, node) + kMaxGrowth)) return false;
  Program program(std::move(single.graph), {.opsets = options.opsets, .fast = false}, unsupported);
  if (!unsupported.empty()) return false;  // reported once, when the whole graph is compiled
  std::vector<at::Tensor> results = program.run({});
  std::size_t next = 0;
  if (!std::ranges::all_of(results, [](const at::Tensor& each) { return each.defined(); })) {
    return false;
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
