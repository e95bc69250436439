// SPDX-License-Identifier: Apache-2.0
// Products of an activation that is quantised as it comes: DynamicQuantizeLinear, MatMulInteger,
// Cast and Mul become one MatMulIntegerToFloat, with the bias and what follows behind it.
#include <cmath>

#include "exec/rewrites/activation.h"
#include "exec/rewrites/integer.h"
#include "passes/affine.h"
#include "passes/match.h"

namespace quench::exec::rewrites {
namespace {

class DynamicRule : GrowingLayer {
 public:
  DynamicRule(Rewriter& rewriter, NodeId id) : GrowingLayer(rewriter, id) {}

  bool run() {
    const Node* product = rewriter_.as(first_, "MatMulInteger");
    if (product == nullptr) return false;
    const NodeId source = rewriter_.maker(product->inputs[0]);
    if (source == kNoNode || rewriter_.node(source).op_type != "DynamicQuantizeLinear" ||
        rewriter_.node(source).outputs.size() != 3 ||
        product->input(2) != rewriter_.node(source).outputs[2]) {
      return false;
    }
    weight_ = rewriter_.constant(product->inputs[1]);
    if (weight_ == nullptr || weight_->rank() != 2 || !takes_cast() ||
        !takes_scales(rewriter_.node(source).outputs[1])) {
      return false;
    }
    take_bias();
    take_number();
    take_row_factors();
    take_residual();
    if (residual_ == kNoValue && factors_ == kNoValue) activation_ = take_activation();
    finish(*product, rewriter_.node(source).outputs[1]);
    return true;
  }

 private:
  bool takes_cast() {
    NodeId next = kNoNode;
    const Node* cast = next_as("Cast", next);
    if (cast == nullptr || cast->get_int("to", 0) != static_cast<std::int64_t>(DType::Float32)) {
      return false;
    }
    advance(next);
    return true;
  }

  /// The weight's scales: one, or one a column.
  bool is_scale(ValueId id) const {
    const Tensor* scale = rewriter_.constant(id);
    const std::int64_t columns = weight_->shape()[1];
    return scale != nullptr && is_real(scale->dtype()) &&
           (scale->size() == 1 || (scale->size() == columns && scale->shape().back() == columns));
  }

  bool takes_scales(ValueId dynamic) {
    NodeId next = kNoNode;
    const Node* mul = next_as("Mul", next);
    const ValueId factor = mul == nullptr ? kNoValue : other_operand(*mul, result());
    const NodeId maker = rewriter_.maker(factor);
    const Node* scales = rewriter_.as(maker, "Mul");
    if (scales == nullptr) return false;
    scale_ = other_operand(*scales, dynamic);
    if (!is_scale(scale_)) return false;
    advance(next);
    if (rewriter_.next(factor) == next) dead_.push_back(maker);
    return true;
  }

  void take_bias() {
    NodeId next = kNoNode;
    const Node* add = next_as("Add", next);
    const Tensor* other =
        add == nullptr ? nullptr : rewriter_.constant(other_operand(*add, result()));
    const auto& shape = rewriter_.graph()[result()].type.shape;
    if (other == nullptr || !is_real(other->dtype()) || !shape || rewriter_.opset() < 7) return;
    const std::int64_t columns = weight_->shape()[1];
    const Channels channels{.count = columns, .last = true, .rank = std::ssize(*shape)};
    auto numbers = per_channel(*other, channels);
    if (!numbers) return;
    bias_ = std::move(*numbers);
    advance(next);
  }

  /// A Mul by one number, as attention has it for its queries: part of the scales and the bias.
  void take_number() {
    const NodeId next = rewriter_.next(result());
    const Node* mul = rewriter_.as(next, "Mul");
    if (mul == nullptr || rewriter_.opset() < 7) return;
    const auto number = rewriter_.scalar(other_operand(*mul, result()));
    if (!number || !std::isfinite(*number)) return;
    number_ = *number;
    advance(next);
  }

  /// A Mul by one number for each row, as masks of words are.
  void take_row_factors() {
    const NodeId next = rewriter_.next(result());
    const Node* mul = rewriter_.as(next, "Mul");
    const ValueId other = mul == nullptr ? kNoValue : other_operand(*mul, result());
    const Graph& graph = rewriter_.graph();
    if (other == kNoValue || graph[other].constant || rewriter_.opset() < 7 ||
        graph[other].type.dtype != DType::Float32) {
      return;
    }
    ValueType rows = graph[result()].type;
    if (!rows.shape || rows.shape->empty()) return;
    rows.shape->back() = {.value = 1, .symbol = {}};
    if (!same_shape(rows, graph[other].type)) return;
    factors_ = other;
    advance(next);
  }

  /// An Add of another value of the same shape.
  void take_residual() {
    const NodeId next = rewriter_.next(result());
    const Node* add = rewriter_.as(next, "Add");
    const ValueId other = add == nullptr ? kNoValue : other_operand(*add, result());
    const Graph& graph = rewriter_.graph();
    if (other == kNoValue || graph[other].constant || rewriter_.opset() < 7 ||
        !same_shape(graph[result()].type, graph[other].type) ||
        graph[other].type.dtype != DType::Float32) {
      return;
    }
    residual_ = other;
    advance(next);
  }

  ValueId scales() {
    if (number_ == 1) return scale_;
    Tensor tensor = convert(*rewriter_.constant(scale_), DType::Float32);
    for (float& each : tensor.mutable_data<float>()) each *= static_cast<float>(number_);
    return rewriter_.add_constant("scale", std::move(tensor));
  }

  ValueId bias() {
    if (bias_.empty()) return kNoValue;
    for (double& each : bias_) each *= number_;
    const Tensor wide = Tensor::of<double>({std::ssize(bias_)}, bias_);
    return rewriter_.add_constant("bias", convert(wide, DType::Float32));
  }

  void finish(const Node& product, ValueId dynamic) {
    const DynamicNode inputs{.a = {product.inputs[0], dynamic, product.input(2)},
                             .b = {product.inputs[1], scales(), product.input(3)},
                             .bias = bias(),
                             .residual = residual_,
                             .factors = factors_};
    Node fused = engine_node("MatMulIntegerToFloat", product.name, inputs.inputs(),
                             rewriter_.node(place_).outputs);
    put_activation(fused, activation_);
    rewriter_.replace(place_, std::move(fused), dead_);
  }

  const Tensor* weight_ = nullptr;
  ValueId scale_ = kNoValue;
  std::vector<double> bias_;
  double number_ = 1;
  ValueId factors_ = kNoValue;
  ValueId residual_ = kNoValue;
  Activation activation_;
};

}  // namespace

bool integer_dynamic(Rewriter& rewriter, NodeId id) { return DynamicRule(rewriter, id).run(); }

}  // namespace quench::exec::rewrites
