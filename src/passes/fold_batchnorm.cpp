// SPDX-License-Identifier: Apache-2.0
// Folds per-channel scales and shifts (BatchNormalization, Mul, Add, Sub, Div) into the weights and
// bias of the layer before them, computed in double and rounded once.
#include "passes/layer.h"

namespace quench::passes {
namespace {

/// The nodes behind a layer that only scale and shift its channels.
struct Chain {
  Affine total;
  std::vector<NodeId> nodes;
};

Chain chain_after(const Rewriter& rewriter, ValueId value, const Channels& channels) {
  Chain chain{.total = Affine::identity(static_cast<std::size_t>(channels.count))};
  for (NodeId id = rewriter.next(value); id != kNoNode; id = rewriter.next(value)) {
    const auto step = affine_of(rewriter, rewriter.node(id), value, channels);
    if (!step) break;
    chain.total.append(*step);
    chain.nodes.push_back(id);
    value = rewriter.result(id);
  }
  return chain;
}

/// Nodes that a MatMul keeps behind it, having no bias of its own.
bool is_bias_already(const Rewriter& rewriter, const Chain& chain) {
  return chain.nodes.size() == 1 && rewriter.as(chain.nodes[0], "Add") != nullptr;
}

struct Folded {
  std::optional<Tensor> weight;  ///< nothing: as it was
  std::optional<Tensor> bias;    ///< nothing: none
};

/// The layer's new constants, or nothing when they cannot be stored.
std::optional<Folded> fold(const Rewriter& rewriter, const Layer& layer, const Affine& chain) {
  Folded result;
  if (chain.scales()) {
    result.weight = scaled_weight(rewriter, layer, chain.scale);
    if (!result.weight) return std::nullopt;
  }
  Affine total{.scale = chain.scale, .shift = layer.shift};
  for (std::size_t i = 0; i < total.shift.size(); ++i) {
    total.shift[i] = total.shift[i] * chain.scale[i] + chain.shift[i];
  }
  if (layer.bias != kNoValue || total.shifts()) {
    const DType dtype = rewriter.constant(layer.weight)->dtype();
    result.bias = rounded(total.shift, {layer.channels.count}, dtype);
    if (!result.bias) return std::nullopt;
  }
  return result;
}

/// The layer itself makes what the last node of the chain made.
void absorb(Rewriter& rewriter, NodeId id, const Layer& layer, const Chain& chain, Folded folded) {
  Node fused = rewriter.node(id);
  const std::string stem = rewriter.graph()[layer.weight].name;
  if (folded.weight) {
    fused.inputs[1] = rewriter.replace_constant(layer.weight, std::move(*folded.weight), stem);
  }
  if (folded.bias) {
    fused.inputs.resize(3, kNoValue);
    fused.inputs[2] =
        rewriter.replace_constant(layer.bias, std::move(*folded.bias), stem + "_bias");
    fused.erase("beta");
  }
  fused.outputs = {rewriter.result(chain.nodes.back())};
  rewriter.replace(id, std::move(fused), chain.nodes);
}

/// A MatMul has no bias: one Add stays behind it, in the place of the last node of the chain.
void absorb_matmul(Rewriter& rewriter, NodeId id, const Layer& layer, const Chain& chain,
                   Folded folded) {
  if (!folded.bias) return absorb(rewriter, id, layer, chain, std::move(folded));
  const std::string stem = rewriter.graph()[layer.weight].name;
  Node product = rewriter.node(id);
  Node add;
  add.op_type = "Add";
  add.name = rewriter.node(chain.nodes.back()).name;
  add.inputs = {product.outputs[0], rewriter.add_constant(stem + "_bias", std::move(*folded.bias))};
  add.outputs = {rewriter.result(chain.nodes.back())};
  const std::span<const NodeId> nodes(chain.nodes);
  rewriter.replace(nodes.back(), std::move(add), nodes.first(nodes.size() - 1));
  if (!folded.weight) return;
  product.inputs[1] = rewriter.replace_constant(layer.weight, std::move(*folded.weight), stem);
  rewriter.replace(id, std::move(product));
}

void fold_at(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const auto layer = layer_of(rewriter, node);
  if (!layer || rewriter.must_stay(layer->weight) ||
      (layer->bias != kNoValue && rewriter.must_stay(layer->bias))) {
    return;
  }
  const Chain chain = chain_after(rewriter, node.outputs[0], layer->channels);
  if (chain.nodes.empty() || (!layer->takes_bias && is_bias_already(rewriter, chain))) return;
  auto folded = fold(rewriter, *layer, chain.total);
  if (!folded) return;
  (layer->takes_bias ? absorb : absorb_matmul)(rewriter, id, *layer, chain, std::move(*folded));
}

}  // namespace

PassReport fold_batchnorm(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) fold_at(rewriter, id);
    }
  });
}

}  // namespace quench::passes
