// SPDX-License-Identifier: Apache-2.0
// Layers whose operands are quantised to 8 bits.
#include <algorithm>
#include <cmath>

#include "exec/rewrites/activation.h"
#include "exec/rewrites/integer.h"
#include "ops/facts.h"
#include "passes/affine.h"
#include "passes/match.h"

namespace quench::exec::rewrites {
namespace {

/// A plain product and sum.
bool is_plain(const Node& node) {
  return node.get_int("transA", 0) == 0 && node.get_float("alpha", 1.0F) == 1.0F &&
         node.get_float("beta", 1.0F) == 1.0F;
}

bool is_matrix(const Node& node) { return ops::facts(node).weight == ops::WeightKind::Matrix; }

class LayerRule : GrowingLayer {
 public:
  LayerRule(Rewriter& rewriter, NodeId id) : GrowingLayer(rewriter, id) {}

  bool run() {
    const Node& node = rewriter_.node(first_);
    const std::string_view name = ops::facts(node).integer_op;
    if (name.empty() || node.outputs.size() != 1 || node.inputs.size() < 2 || !is_plain(node)) {
      return false;
    }
    const auto x = dequantised_per_tensor(rewriter_, node.inputs[0]);
    const auto w = dequantised(rewriter_, node.inputs[1]);
    if (!x || !w || !read_weight(node, *w) || !read_bias(node, *x, *w)) return false;
    take_added_bias(node);
    if (name != "QLinearConvTranspose") take_residual();
    activation_ = take_activation();
    finish(name, *x, *w);
    return true;
  }

 private:
  const Graph& graph() const { return rewriter_.graph(); }

  /// Counts the output channels; false where the scales do not lie along them.
  bool read_weight(const Node& node, const Quantised& w) {
    const Tensor* weight = rewriter_.constant(w.value);
    if (weight != nullptr && !is_centred(w.params)) return false;
    const bool either = ops::facts(node).weights == (ops::kInput0 | ops::kInput1);
    if (weight == nullptr) return either && w.params.per_tensor;
    const auto layout = ops::weight_layout(node, 1, weight->shape());
    if (!layout || (is_matrix(node) && weight->rank() != 2)) {
      return either && weight->rank() > 2 && w.params.per_tensor;
    }
    const bool convolution = ops::facts(node).weight == ops::WeightKind::Convolution;
    if (!convolution && layout->groups != 1) return false;
    channels_ = layout->channels;
    const std::int64_t given = w.params.axis < 0 ? w.params.axis + weight->rank() : w.params.axis;
    if (w.params.per_tensor) return true;
    return given == layout->channel_axis && rewriter_.constant(w.params.scale)->size() == channels_;
  }

  /// The bias stays integers where its scale is that of the sums, and becomes floats otherwise.
  bool read_bias(const Node& node, const Quantised& x, const Quantised& w) {
    const int input = ops::facts(node).bias;
    const ValueId given = input < 0 ? kNoValue : node.input(static_cast<std::size_t>(input));
    if (given == kNoValue) return true;
    if (channels_ == 0) return false;
    if (const Tensor* floats = rewriter_.constant(given))
      return set_bias(to_doubles_or_none(*floats));
    const Node* dequantise = rewriter_.maker_as(given, "DequantizeLinear");
    if (dequantise == nullptr) return false;
    const Tensor* steps = rewriter_.constant(dequantise->input(0));
    const Tensor* scale = rewriter_.constant(dequantise->input(1));
    if (steps == nullptr || scale == nullptr || dequantise->get_int("block_size", 0) != 0 ||
        !is_zero(dequantise->input(2)) || steps->size() != channels_ || steps->rank() != 1) {
      return false;
    }
    const std::vector<double> step = to_doubles(*scale);
    if (std::ssize(step) != 1 && std::ssize(step) != channels_) return false;
    if (steps->dtype() == DType::Int32 && is_scale_of_sums(step, x, w)) {
      bias_ = dequantise->inputs[0];
      return true;
    }
    std::vector<double> numbers = to_doubles(*steps);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= step[step.size() == 1 ? 0 : i];
    return set_bias(numbers);
  }

  std::vector<double> to_doubles_or_none(const Tensor& tensor) const {
    const bool fits =
        is_real(tensor.dtype()) &&
        (tensor.size() == 1 || (tensor.size() == channels_ && tensor.shape().back() == channels_));
    return fits ? to_doubles(tensor) : std::vector<double>();
  }

  bool set_bias(const std::vector<double>& numbers) {
    if (numbers.empty()) return false;
    added_.assign(static_cast<std::size_t>(channels_), 0.0F);
    for (std::size_t i = 0; i < added_.size(); ++i) {
      added_[i] = static_cast<float>(numbers[numbers.size() == 1 ? 0 : i]);
    }
    return true;
  }

  /// oneDNN's weights are signed, with zero points of zero.
  bool is_centred(const ParamValues& params) const {
    if (params.zero == kNoValue) return params.dtype == DType::Int8;
    const auto wanted =
        std::byte{static_cast<unsigned char>(params.dtype == DType::Int8 ? 0 : 128)};
    return std::ranges::all_of(rewriter_.constant(params.zero)->bytes(),
                               [=](std::byte each) { return each == wanted; });
  }

  bool is_zero(ValueId id) const {
    if (id == kNoValue) return true;
    const Tensor* zero = rewriter_.constant(id);
    return zero != nullptr &&
           std::ranges::all_of(zero->bytes(), [](std::byte each) { return each == std::byte{0}; });
  }

  bool is_scale_of_sums(const std::vector<double>& step, const Quantised& x,
                        const Quantised& w) const {
    constexpr double kRounding = 1e-6;
    const double source = scale_of(rewriter_, x.params);
    const std::vector<double> weight = to_doubles(*rewriter_.constant(w.params.scale));
    for (std::size_t i = 0; i < static_cast<std::size_t>(channels_); ++i) {
      const double wanted = source * weight[weight.size() == 1 ? 0 : i];
      const double got = step[step.size() == 1 ? 0 : i];
      if (std::abs(got - wanted) > kRounding * wanted) return false;
    }
    return true;
  }

  /// An Add of a constant behind a MatMul without bias.
  void take_added_bias(const Node& node) {
    if (!is_matrix(node) || channels_ == 0 || bias_ != kNoValue || !added_.empty()) return;
    NodeId next = kNoNode;
    const Node* add = next_as("Add", next);
    const auto& shape = graph()[result()].type.shape;
    if (add == nullptr || !shape || rewriter_.opset() < 7) return;
    const Tensor* other = rewriter_.constant(other_operand(*add, result()));
    const Channels channels{.count = channels_, .last = true, .rank = std::ssize(*shape)};
    const auto numbers = other == nullptr ? std::nullopt : per_channel(*other, channels);
    if (numbers && set_bias(*numbers)) advance(next);
  }

  void take_residual() {
    const NodeId next = rewriter_.next(result());
    const Node* add = rewriter_.as(next, "Add");
    const ValueId other = add == nullptr ? kNoValue : other_operand(*add, result());
    if (other == kNoValue || rewriter_.opset() < 7) return;
    const auto z = dequantised_per_tensor(rewriter_, other);
    if (!z || graph()[z->value].constant ||
        !same_shape(graph()[result()].type, graph()[other].type)) {
      return;
    }
    // Only where the sum is quantised at once: the residual's memory may hold the result.
    ValueId sum = rewriter_.result(next);
    const NodeId after = rewriter_.next(sum);
    if (after != kNoNode && activation_of(rewriter_, rewriter_.node(after))) {
      sum = rewriter_.result(after);
    }
    if (!quantiser_behind(rewriter_, sum)) return;
    residual_ = *z;
    advance(next);
  }

  ValueId bias() {
    if (bias_ != kNoValue || added_.empty()) return bias_;
    return rewriter_.add_constant("bias", Tensor::of<float>({channels_}, added_));
  }

  void finish(std::string_view name, const Quantised& x, const Quantised& w) {
    const DType dtype = graph()[result()].type.dtype;
    const auto quantiser = quantiser_behind(rewriter_, result());
    if (quantiser) advance(quantiser->node);
    const LayerNode inputs{.x = x.input(),
                           .w = w.input(),
                           .out = quantiser ? quantiser->params.input() : ByteInput{},
                           .bias = bias(),
                           .residual = residual_.input()};
    const Node& first = rewriter_.node(first_);
    Node fused = engine_node(name, first.name, inputs.inputs(), rewriter_.node(place_).outputs);
    fused.attributes = first.attributes;
    if (!quantiser) fused.set("to", static_cast<std::int64_t>(dtype));
    put_activation(fused, activation_);
    rewriter_.replace(place_, std::move(fused), dead_);
  }

  std::int64_t channels_ = 0;  ///< 0: not known, the weight is no constant matrix
  ValueId bias_ = kNoValue;
  std::vector<float> added_;
  Quantised residual_;
  Activation activation_;
};

}  // namespace

bool integer_layer(Rewriter& rewriter, NodeId id) { return LayerRule(rewriter, id).run(); }

}  // namespace quench::exec::rewrites
