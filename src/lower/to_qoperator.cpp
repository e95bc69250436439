// SPDX-License-Identifier: Apache-2.0
// A node between DequantizeLinear and QuantizeLinear as one integer operator.
#include <algorithm>
#include <array>

#include "lower/qoperator.h"
#include "plan/facts.h"
#include "plan/qdq.h"
#include "plan/target.h"
#include "quench/lower.h"

namespace quench {
namespace lower {
namespace {

struct RuleRow {
  std::string_view op_type;
  QRule apply;
};

constexpr std::array kRules = {
#define QUENCH_QOPERATOR(op_type, rule) RuleRow{#op_type, rule},
#include "lower/qoperators.inc"
#undef QUENCH_QOPERATOR
};

QRule rule_for(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto* const found = std::ranges::find(kRules, node.op_type, &RuleRow::op_type);
  return found == kRules.end() ? nullptr : found->apply;
}

class Fuser {
 public:
  explicit Fuser(Model& model)
      : graph_(model.graph),
        opset_(model.opset()),
        uses_(model.graph),
        dead_(model.graph.nodes.size(), false) {}

  void run() {
    const auto count = static_cast<NodeId>(graph_.nodes.size());
    for (NodeId id = 0; id < count; ++id) {
      if (plan::is_q(&node(id)) || plan::is_dq(&node(id))) continue;
      if (const QRule rule = rule_for(node(id))) {
        fuse(id, rule);
      } else if (moves(node(id))) {
        move_integers(id);
      }
    }
    drop_unread();
    compact(graph_, dead_);
  }

 private:
  Node& node(NodeId id) { return graph_.nodes[static_cast<std::size_t>(id)]; }
  NodeId producer(ValueId id) const {
    return id == kNoValue ? -1 : uses_.producer[static_cast<std::size_t>(id)];
  }
  const Node* node_at(NodeId id) const {
    return id < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(id)];
  }

  static bool moves(const Node& node) {
    if (!node.domain.empty()) return false;
    const TargetOp* op = plan::find_op(find_target("onnxruntime"), node.op_type);
    if (op == nullptr || op->kind != NodePlan::Kind::PassThrough) return false;
    return node.op_type != "Resize" || node.get_string("mode", "nearest") == "nearest";
  }

  /// The scale of a Q or DQ node; nothing where it is computed or has blocks.
  std::optional<QTensor> params_of(const Node& q) {
    const Tensor* scale = graph_.constant(q.input(1));
    if (scale == nullptr || scale->rank() > 1 || scale->dtype() != DType::Float32) return {};
    QTensor result{.scale = q.input(1), .zero_point = q.input(2)};
    const auto& shape = graph_[q.input(0)].type.shape;
    if (scale->size() != 1) {
      const std::int64_t axis = q.get_int("axis", 1);
      if (!shape) return {};
      result.axis = static_cast<int>(axis < 0 ? axis + std::ssize(*shape) : axis);
    }
    if (result.zero_point == kNoValue) {
      const DType dtype = plan::integer_type(graph_, q);
      result.zero_point = graph_.add_constant(graph_[result.scale].name + "_zero_point",
                                              Tensor::zeros(dtype, scale->shape()));
      graph_[result.zero_point].type.dtype = dtype;
    }
    return graph_.constant(result.zero_point) == nullptr ? std::nullopt : std::optional(result);
  }

  std::optional<QTensor> input_of(ValueId value) {
    const Node* dq = node_at(producer(value));
    if (!plan::is_dq(dq)) return {};
    auto result = params_of(*dq);
    if (result) result->integers = dq->input(0);
    return result;
  }

  /// The QuantizeLinear that alone reads what a node makes, an activation that it makes needless
  /// passed over; -1: none.
  struct Exit {
    NodeId activation = -1;
    NodeId q = -1;
  };
  Exit exit_of(ValueId value) const {
    Exit exit{.q = uses_.only_consumer(value)};
    const Node* reader = node_at(exit.q);
    if (plan::is_q(reader) && reader->input(0) == value) return exit;
    if (reader == nullptr || reader->input(0) != value) return {};
    const auto bounds = plan::activation_bounds(graph_, *reader, opset_);
    if (!bounds) return {};
    exit = {.activation = exit.q, .q = uses_.only_consumer(reader->outputs[0])};
    const Node* q = node_at(exit.q);
    if (!plan::is_q(q) || q->input(0) != reader->outputs[0]) return {};
    return plan::scale_within(graph_, *q, *bounds) ? exit : Exit{};
  }

  bool is_8_bit(const QTensor& tensor) const {
    return plan::is_8_bit(graph_[tensor.zero_point].type.dtype);
  }
  DType dtype(const QTensor& tensor) const { return graph_[tensor.zero_point].type.dtype; }

  /// Kernels want 8-bit integers, one scale for an activation, equal types but for weights, and no
  /// uint8 weight beside an int8 activation.
  bool kernel_reads(const QSite& site) const {
    const bool layer = plan::is_layer(site.node);
    const auto& inputs = site.inputs;
    for (const std::size_t i : plan::data_inputs(site.node)) {
      if (!inputs[i] || !is_8_bit(*inputs[i])) return false;
      const bool weight = layer && i == 1;
      if (!weight && (inputs[i]->axis >= 0 || dtype(*inputs[i]) != dtype(*inputs[0]))) return false;
      if (weight && dtype(*inputs[0]) == DType::Int8 && dtype(*inputs[i]) == DType::UInt8) {
        return false;
      }
    }
    return !site.output || (site.output->axis < 0 && dtype(*site.output) == dtype(*inputs[0]));
  }

  std::optional<ValueId> bias_of(const QSite& site) const {
    const auto& inputs = site.node.inputs;
    if (site.node.input(2) == kNoValue) return kNoValue;
    if (!site.inputs[2] || dtype(*site.inputs[2]) != DType::Int32) return std::nullopt;
    const auto dq = [&](std::size_t i) -> const Node& { return *node_at(producer(inputs[i])); };
    if (!plan::bias_scale_fits(graph_, dq(2), dq(0), dq(1))) return std::nullopt;
    return site.inputs[2]->integers;
  }

  void fuse(NodeId id, QRule rule) {
    QSite site{.graph = graph_, .node = node(id), .opset = opset_};
    if (site.node.outputs.size() != 1) return;
    for (const ValueId input : site.node.inputs) site.inputs.push_back(input_of(input));
    const Exit exit = exit_of(site.node.outputs[0]);
    if (exit.q >= 0) {
      site.output = params_of(node(exit.q));
      if (!site.output) return;
    }
    if (!kernel_reads(site)) return;
    if (plan::is_layer(site.node)) site.bias = bias_of(site);
    auto made = rule(site);
    if (!made) return;
    made->outputs = exit.q < 0 ? node(id).outputs : node(exit.q).outputs;
    node(id) = std::move(*made);
    for (const NodeId gone : {exit.activation, exit.q}) {
      if (gone >= 0) dead_[static_cast<std::size_t>(gone)] = true;
    }
  }

  /// A node that moves elements does so with integers just as well, if the scale stays.
  void move_integers(NodeId id) {
    const Node* dq = node_at(producer(node(id).input(0)));
    if (!plan::is_dq(dq) || !plan::is_8_bit(plan::integer_type(graph_, *dq))) return;
    std::vector<NodeId> exits;
    for (const ValueId output : node(id).outputs) {
      if (output == kNoValue) return;
      const NodeId reader = uses_.only_consumer(output);
      const Node* q = node_at(reader);
      if (!plan::is_q(q) || !plan::same_constant(graph_, q->input(1), dq->input(1)) ||
          !plan::same_constant(graph_, q->input(2), dq->input(2)) ||
          graph_.constant(q->input(1)) == nullptr || graph_.constant(q->input(1))->size() != 1) {
        return;
      }
      exits.push_back(reader);
    }
    node(id).inputs[0] = dq->input(0);
    for (std::size_t i = 0; i < exits.size(); ++i) {
      node(id).outputs[i] = node(exits[i]).outputs[0];
      dead_[static_cast<std::size_t>(exits[i])] = true;
    }
  }

  /// DequantizeLinear nodes whose readers now read the integers.
  void drop_unread() {
    const Uses now(graph_);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!plan::is_dq(&graph_.nodes[i])) continue;
      const auto output = static_cast<std::size_t>(graph_.nodes[i].outputs[0]);
      if (now.consumers[output].empty() && !now.is_output[output]) dead_[i] = true;
    }
  }

  Graph& graph_;
  std::int64_t opset_;
  Uses uses_;  ///< of the graph as it was
  std::vector<bool> dead_;
};

}  // namespace

Node QSite::as(std::string op_type, std::string_view domain) const {
  Node result = node;
  result.op_type = std::move(op_type);
  result.domain = std::string(domain);
  result.inputs.clear();
  return result;
}

void append(std::vector<ValueId>& inputs, const QTensor& tensor) {
  inputs.push_back(tensor.integers);
  append_params(inputs, tensor);
}

void append_params(std::vector<ValueId>& inputs, const QTensor& tensor) {
  inputs.push_back(tensor.scale);
  inputs.push_back(tensor.zero_point);
}

}  // namespace lower

Model to_qoperator(const Model& qdq) {
  Model result = qdq;
  infer_types(result);
  lower::Fuser(result).run();
  const auto foreign = [](const Node& node) { return node.domain == lower::kMicrosoft; };
  if (std::ranges::any_of(result.graph.nodes, foreign)) {
    result.opsets.try_emplace(std::string(lower::kMicrosoft), 1);
  }
  infer_types(result);
  verify(result);
  return result;
}

}  // namespace quench
