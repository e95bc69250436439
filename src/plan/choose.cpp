// SPDX-License-Identifier: Apache-2.0
// Which nodes gain by integers. Layers always do; what lies between layers only where it joins
// them: reads what an integer node made and makes what an integer node reads. A runtime that wants
// integers to the end has them behind the last layer, too.
#include <algorithm>

#include "plan/config.h"
#include "plan/planner.h"

namespace quench::plan {
namespace {

constexpr std::string_view kAlone = "nothing that runs on integers is before it";
constexpr std::string_view kFused = "fused with the layer before it";
constexpr std::string_view kLast = "nothing that runs on integers is behind it";

class Chooser {
 public:
  Chooser(const Job& job, std::vector<NodePlan>& nodes)
      : job_(job), nodes_(nodes), before_layer_(nodes.size()) {
    for (NodeId id = count() - 1; id >= 0; --id) {
      before_layer_[static_cast<std::size_t>(id)] = leads_to_layer(id);
    }
  }

  void run() {
    keep_biases_in_float();
    while (drop_lonely()) {
    }
    absorb_activations();
  }

 private:
  NodePlan& plan(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const NodePlan& plan(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  NodeId count() const { return static_cast<NodeId>(nodes_.size()); }
  bool on_integers(NodeId id) const { return plan(id).kind != NodePlan::Kind::Float; }

  /// The activation that alone reads what a node makes, or -1. Its bounds hold zero, as every
  /// scale and zero point do.
  NodeId activation_behind(NodeId id) const {
    const Node& node = job_.node(id);
    if (node.outputs.size() != 1) return -1;
    const NodeId reader = job_.uses.only_consumer(node.outputs[0]);
    if (reader < 0 || job_.node(reader).input(0) != node.outputs[0]) return -1;
    const auto bounds = activation_bounds(job_.graph, job_.node(reader), job_.model.opset());
    return bounds && bounds->min <= 0 && bounds->max > 0 ? reader : -1;
  }

  /// An integer node makes the value, or a float activation that it absorbs.
  bool from_integers(ValueId value) const {
    NodeId maker = job_.producer(value);
    if (maker < 0) return false;
    if (on_integers(maker)) return true;
    const Node& node = job_.node(maker);
    maker = node.input(0) == kNoValue ? -1 : job_.producer(node.input(0));
    return maker >= 0 && plan(maker).kind == NodePlan::Kind::Integer &&
           activation_behind(maker) == job_.producer(value);
  }

  bool read_by_integers(ValueId value) const {
    for (const NodeId reader : job_.uses.consumers[static_cast<std::size_t>(value)]) {
      if (!on_integers(reader)) continue;
      const Node& node = job_.node(reader);
      const auto inputs = data_inputs(node);
      if (std::ranges::any_of(inputs, [&](std::size_t i) { return node.inputs[i] == value; })) {
        return true;
      }
    }
    return false;
  }

  bool feeds_integers(NodeId id) const {
    for (const ValueId output : job_.node(id).outputs) {
      if (output != kNoValue && read_by_integers(output)) return true;
    }
    if (plan(id).kind != NodePlan::Kind::Integer) return false;
    const NodeId activation = activation_behind(id);
    return activation >= 0 && read_by_integers(job_.node(activation).outputs[0]);
  }

  bool reads_integers(NodeId id) const {
    const Node& node = job_.node(id);
    return std::ranges::any_of(data_inputs(node),
                               [&](std::size_t i) { return from_integers(node.inputs[i]); });
  }

  /// The float result of a product without bias plus a constant is one operation in runtimes; on
  /// integers it would be two, with a rounding between.
  void keep_biases_in_float() {
    if (job_.target.integer_ends) return;
    for (NodeId id = 0; id < count(); ++id) {
      if (!is_layer(job_.node(id)) || ops::facts(job_.node(id)).bias >= 0 ||
          plan(id).kind != NodePlan::Kind::Integer) {
        continue;
      }
      const NodeId add = job_.uses.only_consumer(job_.node(id).outputs[0]);
      if (add < 0 || job_.node(add).op_type != "Add") continue;
      const auto& inputs = job_.node(add).inputs;
      const bool bias = std::ranges::any_of(
          inputs, [&](ValueId input) { return job_.graph.constant(input) != nullptr; });
      if (bias) plan(add) = NodePlan{.reason = "the bias of a MatMul, added to its float result"};
    }
  }

  bool leads_to_layer(NodeId id) const {
    for (const ValueId output : job_.node(id).outputs) {
      if (output == kNoValue) continue;
      for (const NodeId reader : job_.uses.consumers[static_cast<std::size_t>(output)]) {
        if (is_layer(job_.node(reader)) || before_layer_[static_cast<std::size_t>(reader)]) {
          return true;
        }
      }
    }
    return false;
  }

  /// Whether a node that reads integers has some to make. Behind the last layer a target may want
  /// them anyway, but not of arithmetic: boxes that are decoded in 8 bits cost RFB-320 six points
  /// of F1.
  bool makes_integers(NodeId id) const {
    if (!job_.target.integer_ends || before_layer_[static_cast<std::size_t>(id)]) {
      return feeds_integers(id);
    }
    const Node& node = job_.node(id);
    return !ops::is(node, ops::kOperands) &&
           std::ranges::all_of(data_inputs(node), [&](std::size_t i) {
             return job_.graph.constant(node.inputs[i]) != nullptr || from_integers(node.inputs[i]);
           });
  }

  bool drop_lonely() {
    bool changed = false;
    for (NodeId id = 0; id < count(); ++id) {
      if (!on_integers(id) || is_layer(job_.node(id))) continue;
      const bool alone = !reads_integers(id);
      if (!alone && makes_integers(id)) continue;
      plan(id) = NodePlan{.reason = std::string(alone ? kAlone : kLast)};
      changed = true;
    }
    return changed;
  }

  void absorb_activations() {
    for (NodeId id = 0; id < count(); ++id) {
      if (plan(id).kind != NodePlan::Kind::Integer) continue;
      const NodeId activation = activation_behind(id);
      if (activation < 0 || skipped(activation)) continue;
      // One that has a kernel of its own is still free inside another's.
      if (on_integers(activation)) plan(activation) = NodePlan{.reason = std::string(kFused)};
      plan(activation).absorbed_by = job_.name(id);
    }
  }

  /// An activation that the user wants in float keeps what it reads apart.
  bool skipped(NodeId id) const {
    return !named_reason(job_.graph, job_.node(id), job_.config).empty();
  }

  const Job& job_;
  std::vector<NodePlan>& nodes_;
  std::vector<bool> before_layer_;  ///< by node: a layer is somewhere behind it
};

}  // namespace

void choose(const Job& job, std::vector<NodePlan>& nodes) { Chooser(job, nodes).run(); }

}  // namespace quench::plan
