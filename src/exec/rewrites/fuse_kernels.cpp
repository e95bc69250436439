// SPDX-License-Identifier: Apache-2.0
// Joins a layer with the bias, residual and activation behind it into one node of the engine's own
// domain: inputs X, W, B, Z; attributes `activation`, `activation_alpha`, `activation_beta`, and
// `residual`: whether Z is added "before" or "after" the activation.
#include <algorithm>

#include "exec/rewrites/activation.h"
#include "passes/layer.h"
#include "passes/match.h"

namespace quench::exec::rewrites {
namespace {

/// Known alike in every dimension, so that adding them broadcasts nothing.
bool same_type(const ValueType& a, const ValueType& b) {
  if (a.kind != ValueType::Kind::Tensor || a != b || !a.shape) return false;
  return std::ranges::all_of(*a.shape,
                             [](const Dim& dim) { return dim.known() || !dim.symbol.empty(); });
}

class Fusion : GrowingLayer {
 public:
  Fusion(Rewriter& rewriter, NodeId id, Layer layer)
      : GrowingLayer(rewriter, id), layer_(std::move(layer)), fused_(rewriter.node(id)) {}

  void run() {
    take_bias();
    const bool adds = layer_.kind != ops::WeightKind::TransposedConvolution;
    const bool before = adds && take_residual("before");
    const Activation activation = take_activation();
    put_activation(fused_, activation);
    if (adds && !before && !activation.name.empty()) take_residual("after");
    if (!dead_.empty()) finish();
  }

 private:
  void take_bias() {
    const NodeId next = rewriter_.next(result());
    if (next == kNoNode) return;
    const auto step = affine_of(rewriter_, rewriter_.node(next), result(), layer_.channels);
    if (!step || step->scales()) return;
    for (std::size_t i = 0; i < layer_.shift.size(); ++i) layer_.shift[i] += step->shift[i];
    has_bias_ = true;
    advance(next);
  }

  bool take_residual(const char* where) {
    const NodeId next = rewriter_.next(result());
    const Node* add = rewriter_.as(next, "Add");
    if (add == nullptr) add = rewriter_.as(next, "Sum");
    const ValueId other = add == nullptr ? kNoValue : other_operand(*add, result());
    const Graph& graph = rewriter_.graph();
    if (other == kNoValue || graph[other].constant || rewriter_.opset() < 7 ||
        !same_type(graph[result()].type, graph[other].type)) {
      return false;
    }
    residual_ = other;
    fused_.set("residual", std::string(where));
    advance(next);
    return true;
  }

  /// The bias as the engine wants it: one number a channel, and nothing to multiply it by.
  ValueId bias() {
    const bool plain = layer_.kind != ops::WeightKind::Matrix || layer_.bias == kNoValue;
    if (!has_bias_ && plain) return layer_.bias;
    const DType dtype = rewriter_.constant(layer_.weight)->dtype();
    const Tensor sum = convert(Tensor::of<double>({layer_.channels.count}, layer_.shift), dtype);
    return rewriter_.add_constant(rewriter_.graph()[layer_.weight].name + "_bias", sum);
  }

  /// Multiplies Gemm's alpha into the weight; false when the result cannot be stored.
  bool take_alpha() {
    const double alpha = fused_.get_float("alpha", 1.0F);
    fused_.erase("alpha");
    if (layer_.kind != ops::WeightKind::Matrix || alpha == 1) return true;
    const std::vector<double> scale(static_cast<std::size_t>(layer_.channels.count), alpha);
    std::optional<Tensor> weight = scaled_weight(rewriter_, layer_, scale);
    if (!weight) return false;
    fused_.inputs[FloatLayerNode::kW] =
        rewriter_.add_constant(rewriter_.graph()[layer_.weight].name, std::move(*weight));
    return true;
  }

  void finish() {
    if (!take_alpha()) return;
    fused_.domain = kEngineDomain;
    const FloatLayerNode inputs{.x = fused_.inputs[FloatLayerNode::kX],
                                .w = fused_.inputs[FloatLayerNode::kW],
                                .bias = bias(),
                                .residual = residual_};
    fused_.inputs = inputs.inputs();
    fused_.erase("beta");
    fused_.outputs = rewriter_.node(place_).outputs;
    rewriter_.replace(place_, std::move(fused_), dead_);
  }

  Layer layer_;
  Node fused_;
  ValueId residual_ = kNoValue;
  bool has_bias_ = false;
};

void sweep(Rewriter& rewriter) {
  // From the end: of two layers that are added, the later one takes the sum.
  for (NodeId id = rewriter.num_nodes() - 1; id >= 0; --id) {
    if (!rewriter.alive(id)) continue;
    auto layer = layer_of(rewriter, rewriter.node(id));
    if (!layer || rewriter.node(id).get_int("transA", 0) != 0) continue;
    Fusion(rewriter, id, std::move(*layer)).run();
  }
}

}  // namespace

PassReport fuse_kernels(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, sweep);
}

}  // namespace quench::exec::rewrites
