// SPDX-License-Identifier: Apache-2.0
// Products of an activation that is quantised as it comes: DynamicQuantizeLinear, MatMulInteger,
// Cast and Mul become one MatMulIntegerToFloat, with the bias behind it.
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

  ValueId bias() {
    if (bias_.empty()) return kNoValue;
    const Tensor wide = Tensor::of<double>({std::ssize(bias_)}, bias_);
    return rewriter_.add_constant("bias", convert(wide, DType::Float32));
  }

  void finish(const Node& product, ValueId dynamic) {
    const DynamicNode inputs{.a = {product.inputs[0], dynamic, product.input(2)},
                             .b = {product.inputs[1], scale_, product.input(3)},
                             .bias = bias()};
    Node fused = engine_node("MatMulIntegerToFloat", product.name, inputs.inputs(),
                             rewriter_.node(place_).outputs);
    rewriter_.replace(place_, std::move(fused), dead_);
  }

  const Tensor* weight_ = nullptr;
  ValueId scale_ = kNoValue;
  std::vector<double> bias_;
};

}  // namespace

bool integer_dynamic(Rewriter& rewriter, NodeId id) { return DynamicRule(rewriter, id).run(); }

}  // namespace quench::exec::rewrites
