// SPDX-License-Identifier: Apache-2.0
// Finds the groups: a walk over all nodes that unites values, and marks those that must stay.
#include "tune/scale_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "passes/layer.h"
#include "plan/facts.h"

namespace quench::tune {
namespace {

bool keeps_scale(const Node& node) {
  return ops::is(node, ops::kKeepsScale) && node.outputs.size() == 1;
}

bool is_gate(const Node& node) {
  return node.domain.empty() && (node.op_type == "HardSigmoid" || node.op_type == "Sigmoid");
}

/// Sets of values, joined step by step.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count), fixed_(count, false) {
    std::iota(parent_.begin(), parent_.end(), ValueId{0});
  }
  ValueId root(ValueId id) const {
    while (parent_[index(id)] != id) id = parent_[index(id)];
    return id;
  }
  void unite(ValueId a, ValueId b) {
    const ValueId from = root(a);
    const ValueId to = root(b);
    if (from == to) return;
    parent_[index(from)] = to;
    if (fixed_[index(from)]) fixed_[index(to)] = true;
  }
  void fix(ValueId id) {
    if (id != kNoValue) fixed_[index(root(id))] = true;
  }
  bool fixed(ValueId id) const { return fixed_[index(root(id))]; }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }
  std::vector<ValueId> parent_;
  std::vector<bool> fixed_;
};

class Finder {
 public:
  explicit Finder(const Model& model)
      : model_(model),
        copy_(model),
        rewriter_(copy_.graph, copy_, options_),
        uses_(model.graph),
        sets_(model.graph.values().size()) {}

  std::vector<ScaleGroup> run() {
    const Graph& graph = model_.graph;
    for (const ValueId id : graph.inputs) sets_.fix(id);
    for (const ValueId id : graph.outputs) sets_.fix(id);
    for (const Node& node : graph.nodes) {
      for (const std::string& name : captured_names(node)) sets_.fix(graph.find(name));
      tie(node);
    }
    std::map<ValueId, ScaleGroup> groups;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) gather(static_cast<NodeId>(i), groups);
    std::vector<ScaleGroup> result;
    for (auto& [root, group] : groups) {
      if (group.makers.empty() || group.readers.empty()) continue;
      if (same_channels(group)) result.push_back(std::move(group));
    }
    return result;
  }

 private:
  const Graph& graph() const { return model_.graph; }

  std::int64_t channels(ValueId id) const {
    const auto& shape = graph()[id].type.shape;
    return shape && shape->size() >= 2 && (*shape)[1].known() ? (*shape)[1].value : -1;
  }

  bool is_layer(const Node& node) const {
    if (!plan::is_layer(node)) return false;
    const auto layer = passes::layer_of(rewriter_, node);
    if (!layer || node.get_int("transA", 0) != 0) return false;
    if (uses_.consumers[static_cast<std::size_t>(node.inputs[1])].size() != 1) return false;
    // The last axis of a matrix product is axis 1 only where there are two.
    const auto& shape = graph()[node.outputs[0]].type.shape;
    return !layer->channels.last || (shape && shape->size() == 2);
  }

  /// The input that a node hands on scaled, where only one counts; kNoValue: none.
  ValueId carried(const Node& node) const {
    if (keeps_scale(node)) return node.input(0);
    const auto bounds = plan::activation_bounds(graph(), node, model_.opset());
    if (node.op_type == "Clip" && bounds && bounds->min == 0) return node.input(0);
    if (node.op_type == "Flatten" && node.get_int("axis", 1) == 1) return flattened(node);
    if (!node.domain.empty() || node.inputs.size() != 2) return kNoValue;
    if (const std::size_t i = constant_input(node); i < 2) {
      const bool known =
          node.op_type == "Add" || node.op_type == "Mul" || (node.op_type == "Div" && i == 1);
      return known ? node.inputs[1 - i] : kNoValue;
    }
    return node.op_type == "Mul" ? gated(node) : kNoValue;
  }

  /// Which of two inputs is one number, or one a channel; 2: none.
  std::size_t constant_input(const Node& node) const {
    for (const std::size_t i : {0U, 1U}) {
      const Tensor* constant = graph().constant(node.input(i));
      const auto& shape = graph()[node.outputs[0]].type.shape;
      if (constant == nullptr || constant->dtype() != DType::Float32 || !shape) continue;
      const passes::Channels wanted{.count = channels(node.outputs[0]),
                                    .rank = static_cast<std::int64_t>(shape->size())};
      if (wanted.count > 0 && passes::per_channel(*constant, wanted)) return i;
    }
    return 2;
  }

  /// The input of a Flatten of [N, C, 1, 1].
  ValueId flattened(const Node& node) const {
    const std::int64_t count = channels(node.input(0));
    return count > 0 && count == channels(node.outputs[0]) ? node.input(0) : kNoValue;
  }

  /// x of x * gate.
  ValueId gated(const Node& node) const {
    for (const std::size_t i : {0U, 1U}) {
      const ValueId gate = node.input(1 - i);
      const ValueId x = node.input(i);
      if (gate == kNoValue || x == kNoValue || graph().constant(x) != nullptr) continue;
      const NodeId maker = uses_.producer[static_cast<std::size_t>(gate)];
      const bool whole =
          graph()[x].type.shape && graph()[node.outputs[0]].type.shape &&
          graph()[x].type.shape->size() == graph()[node.outputs[0]].type.shape->size() &&
          channels(x) == channels(node.outputs[0]);
      if (maker >= 0 && is_gate(graph().nodes[static_cast<std::size_t>(maker)]) && whole) return x;
    }
    return kNoValue;
  }

  bool is_sum(const Node& node) const {
    return node.op_type == "Add" && node.domain.empty() &&
           std::ranges::all_of(node.inputs, [&](ValueId id) {
             return id != kNoValue && graph().constant(id) == nullptr &&
                    graph()[id].type == graph()[node.outputs[0]].type;
           });
  }

  void tie(const Node& node) {
    if (is_layer(node)) return;
    if (is_gate(node)) {
      sets_.fix(node.outputs[0]);
      return;
    }
    if (is_sum(node)) {
      for (const ValueId input : node.inputs) sets_.unite(input, node.outputs[0]);
      return;
    }
    const ValueId x = carried(node);
    if (x != kNoValue) sets_.unite(x, node.outputs[0]);
    for (const ValueId output : node.outputs) {
      if (x == kNoValue) sets_.fix(output);
    }
    for (const ValueId input : node.inputs) {
      if (input != x && input != kNoValue && graph().constant(input) == nullptr) sets_.fix(input);
    }
  }

  /// The group of a value, made when it is first asked for; null where it must stay.
  ScaleGroup* group_of(ValueId id, std::map<ValueId, ScaleGroup>& groups) {
    if (id == kNoValue || graph().constant(id) != nullptr || sets_.fixed(id)) return nullptr;
    ScaleGroup& group = groups[sets_.root(id)];
    if (std::ranges::find(group.values, id) == group.values.end()) group.values.push_back(id);
    return &group;
  }

  void gather(NodeId id, std::map<ValueId, ScaleGroup>& groups) {
    const Node& node = graph().nodes[static_cast<std::size_t>(id)];
    ScaleGroup* in = group_of(node.input(0), groups);
    ScaleGroup* out = node.outputs.empty() ? nullptr : group_of(node.outputs[0], groups);
    if (is_layer(node)) {
      if (in != nullptr) in->readers.push_back(id);
      if (out != nullptr) {
        out->makers.push_back(id);
        out->channels = passes::layer_of(rewriter_, node)->channels.count;
      }
    } else if (is_gate(node) && in != nullptr) {
      in->gates.push_back(id);
    } else if (node.op_type == "Add" && out != nullptr && constant_input(node) < 2) {
      out->shifts.emplace_back(id, constant_input(node));
    } else if (node.op_type == "Clip" && in != nullptr) {
      const auto bounds = plan::activation_bounds(graph(), node, model_.opset());
      if (bounds) in->ceiling = std::min(in->ceiling, bounds->max);
    }
  }

  bool same_channels(const ScaleGroup& group) const {
    return std::ranges::all_of(group.values,
                               [&](ValueId id) { return channels(id) == group.channels; });
  }

  const Model& model_;
  Model copy_;
  passes::PassOptions options_;
  passes::Rewriter rewriter_;
  Uses uses_;
  Sets sets_;
};

}  // namespace

std::vector<ScaleGroup> find_scale_groups(const Model& model) { return Finder(model).run(); }

}  // namespace quench::tune
