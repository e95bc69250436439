// SPDX-License-Identifier: Apache-2.0
// Whether a runtime will run each node of a quantised model on integers.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "plan/facts.h"
#include "plan/qdq.h"
#include "plan/target.h"

namespace quench {
namespace plan {
namespace {

class Linter {
 public:
  Linter(const Model& model, const TargetInfo& target)
      : model_(model), graph_(model.graph), target_(target), uses_(model.graph) {}

  std::vector<LintLine> run() {
    std::vector<LintLine> lines;
    for (const Node& node : graph_.nodes) {
      if (is_q(&node) || is_dq(&node)) continue;
      std::string reason = refuse(node);
      const bool integer = reason.empty() || reason.starts_with(kInside);
      lines.push_back({.node = key_of(graph_, node),
                       .op_type = node.op_type,
                       .integer = integer,
                       .reason = std::move(reason)});
    }
    return lines;
  }

 private:
  static constexpr std::string_view kInside = "runs inside";

  const Node* node_at(NodeId id) const {
    return id < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(id)];
  }
  const Node* producer(ValueId id) const {
    return id == kNoValue ? nullptr : node_at(uses_.producer[static_cast<std::size_t>(id)]);
  }
  const Node* reader(ValueId id) const { return node_at(uses_.only_consumer(id)); }
  bool onnxruntime() const { return target_.name == "onnxruntime"; }
  const std::string& name(ValueId id) const { return graph_[id].name; }

  static bool is_integer_operator(const Node& node) {
    return node.op_type.starts_with("QLinear") || node.op_type == "QGemm" ||
           node.op_type == "MatMulInteger" || node.op_type == "ConvInteger" ||
           node.op_type == "MatMulIntegerToFloat";
  }

  bool clips_integers(const Node& node) const {
    return node.op_type == "Clip" && is_8_bit(graph_[node.inputs[0]].type.dtype);
  }

  /// Why the node runs in float; "" or "runs inside" when it does not.
  std::string refuse(const Node& node) const {
    if (is_integer_operator(node)) return "";
    if (!node.domain.empty()) return format("an operator of domain '{}'", node.domain);
    if (target_.integer_clip && clips_integers(node)) return "";
    if (std::string host = absorbed_by(node); !host.empty()) return host;
    if (std::string host = added_to(node); !host.empty()) return host;
    const TargetOp* op = find_op(target_, node.op_type);
    if (op == nullptr) return std::string(target_.otherwise);
    if (op->kind == NodePlan::Kind::Float) return std::string(op->reason);
    if (op->kind == NodePlan::Kind::PassThrough) return refuse_mover(node);
    if (node.op_type == "Concat" && reads_bytes(node)) return "";
    if (target_.refuse != nullptr) {
      if (std::string reason = target_.refuse(graph_, before_lowering(node)); !reason.empty()) {
        return reason;
      }
    }
    if (target_.prefer_float != nullptr) {
      if (std::string reason = target_.prefer_float(graph_, before_lowering(node));
          !reason.empty()) {
        return reason;
      }
    }
    if (std::string reason = refuse_inputs(node); !reason.empty()) return reason;
    if (std::string reason = refuse_bias(node); !reason.empty()) return reason;
    if (!target_.quantize_outputs) return "";
    if (op->float_output) return refuse_float_output(node);
    return refuse_output(node);
  }

  bool reads_bytes(const Node& node) const {
    return std::ranges::all_of(node.inputs,
                               [&](ValueId id) { return is_8_bit(graph_[id].type.dtype); });
  }

  /// The node with its stored integers as weights: they have the shape that the float ones had.
  Node before_lowering(Node node) const {
    for (ValueId& input : node.inputs) {
      const Node* dq = producer(input);
      if (is_dq(dq) && graph_.constant(dq->input(0)) != nullptr) input = dq->input(0);
    }
    return node;
  }

  DType integer_type(const Node& q) const { return plan::integer_type(graph_, q); }

  std::string refuse_inputs(const Node& node) const {
    bool residual = target_.residual_in_float && node.op_type == "Add";
    DType first = DType::Undefined;
    for (const std::size_t i : data_inputs(node)) {
      const ValueId input = node.inputs[i];
      const Node* dq = producer(input);
      if (!is_dq(dq)) {
        if (residual && graph_.constant(input) == nullptr) {
          residual = false;
          continue;
        }
        return format("no DequantizeLinear makes its input '{}'", name(input));
      }
      const DType dtype = integer_type(*dq);
      if (!is_8_bit(dtype)) return format("no kernel for {}", name_of(dtype));
      if (!is_layer(node) && first != DType::Undefined && first != dtype) {
        return format("its inputs are {} and {}", name_of(first), name_of(dtype));
      }
      if (i == 0) first = dtype;
      if (first == DType::Int8 && dtype == DType::UInt8) return "int8 times uint8 has no kernel";
      if (onnxruntime() && node.op_type == "Gemm" && dq->input(2) == kNoValue) {
        return format("the DequantizeLinear of '{}' has no zero point", name(input));
      }
    }
    return "";
  }

  std::string refuse_bias(const Node& node) const {
    if (!onnxruntime() || !is_layer(node) || node.input(2) == kNoValue) return "";
    const Node* dq = producer(node.input(2));
    if (!is_dq(dq)) {
      return node.op_type == "Gemm" ? "its bias is float" : "";
    }
    if (graph_[dq->input(0)].type.dtype != DType::Int32) return "its bias is not int32";
    if (!bias_scale_fits(graph_, *dq, *producer(node.input(0)), *producer(node.input(1)))) {
      return "the scale of its bias is not that of its input times that of its weight";
    }
    return "";
  }

  /// The activation behind a node that the target drops, or null.
  const Node* dropped_activation(ValueId value) const {
    const Node* next = reader(value);
    if (next == nullptr || next->input(0) != value) return nullptr;
    const auto bounds = activation_bounds(graph_, *next, model_.opset());
    if (!bounds) return nullptr;
    if (!onnxruntime()) return next;
    const Node* q = reader(next->outputs[0]);
    if (!is_q(q)) return nullptr;
    return scale_within(graph_, *q, *bounds) ? next : nullptr;
  }

  std::string absorbed_by(const Node& node) const {
    const Node* host = producer(node.input(0));
    if (host == nullptr || dropped_activation(node.input(0)) != &node) return "";
    const TargetOp* op = find_op(target_, host->op_type);
    if (op == nullptr || op->kind != NodePlan::Kind::Integer || !on_integers(*host)) return "";
    return format("{} the {} before it", kInside, host->op_type);
  }

  bool on_integers(const Node& node) const {
    const std::string reason = refuse(node);
    return reason.empty() || reason.starts_with(kInside);
  }

  /// Where biases are floats, a constant that is added to each channel of a layer is its bias.
  std::string added_to(const Node& node) const {
    if (target_.quantize_bias || node.op_type != "Add") return "";
    for (const std::size_t i : {0U, 1U}) {
      const Node* layer = producer(node.input(i));
      const Tensor* bias = graph_.constant(node.input(1 - i));
      if (layer == nullptr || bias == nullptr || !is_layer(*layer) || layer->input(2) != kNoValue ||
          reader(node.input(i)) != &node || !is_bias(*layer, *bias) || !refuse(*layer).empty()) {
        continue;
      }
      return format("{} the {} before it", kInside, layer->op_type);
    }
    return "";
  }

  /// One number for each channel, which products have last and convolutions behind the batch.
  bool is_bias(const Node& layer, const Tensor& bias) const {
    const auto& shape = graph_[layer.outputs[0]].type.shape;
    if (!shape || bias.rank() > static_cast<std::int64_t>(shape->size())) return false;
    const bool product = ops::facts(layer).integer == ops::IntegerForm::Product;
    const std::size_t axis = product ? shape->size() - 1 : 1;
    const std::size_t first = shape->size() - static_cast<std::size_t>(bias.rank());
    for (std::size_t i = 0; i < static_cast<std::size_t>(bias.rank()); ++i) {
      if (first + i != axis && bias.shape()[i] != 1) return false;
    }
    return true;
  }

  std::string refuse_output(const Node& node) const {
    ValueId output = node.outputs[0];
    if (const Node* activation = dropped_activation(output)) output = activation->outputs[0];
    const auto index = static_cast<std::size_t>(output);
    if (uses_.is_output[index]) return format("its result '{}' leaves the graph", name(output));
    if (uses_.consumers[index].size() > 1) {
      return format("{} nodes read its float result '{}'", uses_.consumers[index].size(),
                    name(output));
    }
    const Node* q = reader(output);
    if (q == nullptr) return "nothing reads its result";
    if (!is_q(q)) {
      return format("its result goes to {} before any QuantizeLinear", q->op_type);
    }
    const DType made = integer_type(*q);
    const DType read = integer_type(*producer(node.input(0)));
    if (made != read) {
      return format("it reads {} and makes {}", name_of(read), name_of(made));
    }
    return "";
  }

  /// A product of matrices without bias whose result a constant is added to becomes a Gemm with a
  /// float bias.
  std::string refuse_float_output(const Node& node) const {
    if (!onnxruntime() || !is_layer(node) || ops::facts(node).bias >= 0) return "";
    const Node* add = reader(node.outputs[0]);
    const auto& shape = graph_[node.outputs[0]].type.shape;
    if (add == nullptr || add->op_type != "Add" || !shape || shape->size() != 2) return "";
    const bool bias = std::ranges::any_of(add->inputs, [&](ValueId input) {
      const Tensor* constant = graph_.constant(input);
      return constant != nullptr && constant->rank() <= 2;
    });
    return bias ? "ONNX Runtime joins it with the Add behind it to a Gemm with a float bias" : "";
  }

  std::string refuse_mover(const Node& node) const {
    const Node* dq = producer(node.input(0));
    if (node.input(0) != kNoValue && is_8_bit(graph_[node.input(0)].type.dtype)) return "";
    if (!is_dq(dq)) return format("no DequantizeLinear makes its input '{}'", name(node.input(0)));
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      const Node* q = reader(output);
      if (!is_q(q)) return format("no QuantizeLinear alone reads its result '{}'", name(output));
      if (!same_constant(graph_, q->input(1), dq->input(1)) ||
          !same_constant(graph_, q->input(2), dq->input(2))) {
        return "it would have to change the scale";
      }
    }
    return "";
  }

  const Model& model_;
  const Graph& graph_;
  const TargetInfo& target_;
  Uses uses_;
};

}  // namespace
}  // namespace plan

std::vector<LintLine> lint(const Model& model, std::string_view target) {
  const TargetInfo& info = find_target(target);
  Model typed = model;
  infer_types(typed);
  return plan::Linter(typed, info).run();
}

}  // namespace quench
