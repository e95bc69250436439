// SPDX-License-Identifier: Apache-2.0
// Walks back from collective operators to the layers whose results they join.
#include "passes/parallel_layers.h"

#include <algorithm>
#include <array>

#include "ops/facts.h"

namespace quench::passes {
namespace {

/// Of a sum's parts each of these gives parts of its own, whatever else it reads.
constexpr auto kLinear =
    std::to_array<std::string_view>({"Add", "Cast", "Flatten", "Identity", "Reshape", "Squeeze",
                                     "Sub", "Sum", "Transpose", "Unsqueeze"});
/// Likewise where all else that it reads is constant.
constexpr auto kScales = std::to_array<std::string_view>({"Div", "Mul"});

ValueId made(const Node& node) { return node.outputs.empty() ? kNoValue : node.outputs[0]; }

bool sums(const Node& node) { return is_collective(node) && node.op_type == "AllReduce"; }

class Finder {
 public:
  using Kinds = std::map<ValueId, std::string>;

  Finder(const Graph& graph, Kinds& kinds)
      : graph_(graph), kinds_(kinds), uses_(graph), seen_(graph.nodes.size(), false) {}

  void run() {
    for (const Node& node : graph_.nodes) {
      if (sums(node)) find_rows(node.input(0));
    }
    std::fill(seen_.begin(), seen_.end(), false);
    for (const Node& node : graph_.nodes) {
      const bool gathers = is_collective(node) && !sums(node);
      const auto known = kinds_.find(made(node));
      const bool rows = known != kinds_.end() && known->second == kRowParallel;
      if (gathers || rows) find_columns(node.input(0));
    }
  }

 private:
  /// The node that makes a value, the first time it is asked for.
  NodeId next(ValueId value) {
    const NodeId id = value == kNoValue ? -1 : uses_.producer[static_cast<std::size_t>(value)];
    if (id < 0 || seen_[static_cast<std::size_t>(id)]) return -1;
    seen_[static_cast<std::size_t>(id)] = true;
    return id;
  }

  const Node& node(NodeId id) const { return graph_.nodes[static_cast<std::size_t>(id)]; }

  /// A product with a weight that the model holds, as it is or as integers.
  bool is_linear(const Node& node) const {
    if (ops::facts(node).weight != ops::WeightKind::Matrix) return false;
    const ValueId weight = node.input(1);
    if (graph_.constant(weight) != nullptr) return true;
    const NodeId maker = weight == kNoValue ? -1 : uses_.producer[static_cast<std::size_t>(weight)];
    if (maker < 0) return false;
    const Node& stored = graph_.nodes[static_cast<std::size_t>(maker)];
    return stored.op_type == "DequantizeLinear" && graph_.constant(stored.input(0)) != nullptr;
  }

  void mark(const Node& layer, const char* kind) { kinds_[made(layer)] = kind; }

  bool hands_on_parts(const Node& node) const {
    if (std::ranges::find(kLinear, node.op_type) != kLinear.end()) return true;
    const auto computed = std::ranges::count_if(
        node.inputs, [&](ValueId id) { return graph_.constant(id) == nullptr; });
    return computed == 1 && std::ranges::find(kScales, node.op_type) != kScales.end();
  }

  void find_rows(ValueId value) {
    const NodeId id = next(value);
    if (id < 0 || is_collective(node(id))) return;
    if (is_linear(node(id))) return mark(node(id), kRowParallel);
    if (!hands_on_parts(node(id))) return;
    for (const ValueId input : node(id).inputs) find_rows(input);
  }

  void find_columns(ValueId value) {
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const NodeId id = next(open.back());
      open.pop_back();
      if (id < 0 || is_collective(node(id))) continue;
      if (kinds_.contains(made(node(id)))) continue;
      if (is_linear(node(id))) {
        mark(node(id), kColumnParallel);
      } else {
        open.insert(open.end(), node(id).inputs.begin(), node(id).inputs.end());
      }
    }
  }

  const Graph& graph_;
  Kinds& kinds_;
  Uses uses_;
  std::vector<bool> seen_;
};

}  // namespace

bool is_collective(const Node& node) {
  return node.domain == "com.microsoft" &&
         (node.op_type == "AllReduce" || node.op_type == "AllGather");
}

ParallelLayers::ParallelLayers(const Graph& graph) : graph_(graph) { Finder(graph, kinds_).run(); }

const std::string& ParallelLayers::kind(const Node& node) const {
  static const std::string kNone;
  if (kinds_.empty()) return kNone;
  const auto found = kinds_.find(made(node));
  return found == kinds_.end() ? kNone : found->second;
}

std::set<std::string> ParallelLayers::split_values() const {
  std::set<std::string> names;
  if (kinds_.empty()) return names;
  // Nodes stand in the order in which they run.
  for (const Node& node : graph_.nodes) {
    const bool reads = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return id != kNoValue && names.contains(graph_[id].name); });
    const std::string& own = kind(node);
    const bool ends = is_collective(node) || own == kRowParallel;
    if (ends || (!reads && own != kColumnParallel)) continue;
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) names.insert(graph_[id].name);
    }
  }
  return names;
}

int ParallelLayers::split_axis(const Node& node, const Shape& weight) const {
  const std::string& own = kind(node);
  const auto layout = own.empty() ? std::nullopt : ops::weight_layout(node, 1, weight);
  if (!layout) return -1;
  return own == kRowParallel ? layout->sum_axis : layout->channel_axis;
}

}  // namespace quench::passes
