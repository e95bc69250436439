// SPDX-License-Identifier: Apache-2.0
// Finds hard sigmoids by their nodes.
#include "tune/gates.h"

#include <cmath>
#include <optional>

#include "plan/facts.h"

namespace quench::tune {
namespace {

constexpr double kClose = 1e-6;

class Joiner {
 public:
  explicit Joiner(Model& model)
      : model_(model), graph_(model.graph), uses_(graph_), dead_(graph_.nodes.size(), false) {}

  std::size_t run() {
    std::size_t joined = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) joined += join(graph_.nodes[i]) ? 1 : 0;
    compact(graph_, dead_);
    return joined;
  }

 private:
  std::optional<double> number(ValueId id) const {
    const Tensor* tensor = graph_.constant(id);
    if (tensor == nullptr || tensor->size() != 1 || tensor->rank() > 1) return std::nullopt;
    return static_cast<double>(to_float(*tensor)[0]);
  }

  bool is_number(ValueId id, double wanted) const {
    const auto found = number(id);
    return found && std::abs(*found - wanted) < kClose * std::abs(wanted);
  }

  /// The node that makes a value which one node alone reads; -1: none of that type.
  NodeId inner(ValueId id, std::string_view op) const {
    if (id == kNoValue || uses_.only_consumer(id) < 0) return -1;
    const NodeId maker = uses_.producer[static_cast<std::size_t>(id)];
    if (maker < 0) return -1;
    const Node& node = at(maker);
    return node.op_type == op && node.domain.empty() ? maker : -1;
  }
  const Node& at(NodeId id) const { return graph_.nodes[static_cast<std::size_t>(id)]; }

  /// What a node divides by six, or kNoValue.
  ValueId sixth(const Node& node) const {
    if (!node.domain.empty() || node.inputs.size() != 2) return kNoValue;
    if (node.op_type == "Div") return is_number(node.inputs[1], 6) ? node.inputs[0] : kNoValue;
    if (node.op_type != "Mul") return kNoValue;
    if (is_number(node.inputs[1], 1.0 / 6)) return node.inputs[0];
    return is_number(node.inputs[0], 1.0 / 6) ? node.inputs[1] : kNoValue;
  }

  /// A Clip(x + 3, 0, 6).
  struct Ramp {
    NodeId clip = -1;
    NodeId add = -1;
    ValueId x = kNoValue;
  };
  std::optional<Ramp> ramp(ValueId id) const {
    Ramp found;
    found.clip = inner(id, "Clip");
    if (found.clip < 0) return std::nullopt;
    const auto bounds = plan::activation_bounds(graph_, at(found.clip), model_.opset());
    if (!bounds || bounds->min != 0 || std::abs(bounds->max - 6) > kClose) return std::nullopt;
    found.add = inner(at(found.clip).inputs[0], "Add");
    if (found.add < 0) return std::nullopt;
    for (const std::size_t i : {0U, 1U}) {
      if (is_number(at(found.add).inputs[1 - i], 3)) found.x = at(found.add).inputs[i];
    }
    return found.x == kNoValue ? std::nullopt : std::optional(found);
  }

  bool join(Node& root) {
    const ValueId scaled = sixth(root);
    if (scaled == kNoValue) return false;
    if (const auto found = ramp(scaled)) {
      put_gate(*found, root.outputs[0]);
      dead_[index(root)] = true;
      return true;
    }
    const NodeId product = inner(scaled, "Mul");
    if (product < 0) return false;
    for (const std::size_t i : {0U, 1U}) {
      const ValueId x = at(product).inputs[i];
      const auto found = ramp(at(product).inputs[1 - i]);
      if (!found || found->x != x) continue;
      const ValueId gate = graph_.add_fresh(graph_[x].name + "_gate", graph_[x].type);
      put_gate(*found, gate);
      dead_[static_cast<std::size_t>(product)] = true;
      root.op_type = "Mul";
      root.inputs = {x, gate};
      return true;
    }
    return false;
  }

  std::size_t index(const Node& node) const {
    return static_cast<std::size_t>(&node - graph_.nodes.data());
  }

  /// The Add becomes the gate; the Clip goes.
  void put_gate(const Ramp& found, ValueId output) {
    Node& gate = graph_.nodes[static_cast<std::size_t>(found.add)];
    gate.op_type = "HardSigmoid";
    gate.inputs = {found.x};
    gate.outputs = {output};
    gate.set("alpha", 1.0F / 6.0F);
    gate.set("beta", 0.5F);
    dead_[static_cast<std::size_t>(found.clip)] = true;
  }

  Model& model_;
  Graph& graph_;
  Uses uses_;
  std::vector<bool> dead_;
};

}  // namespace

std::size_t join_gates(Model& model) { return Joiner(model).run(); }

}  // namespace quench::tune
