// SPDX-License-Identifier: Apache-2.0
// Folds per-channel scales and shifts into the layer behind them: BatchNormalization before a
// convolution, or the scalars Paddle's re-parametrised networks leave between layers.
#include <algorithm>

#include "exec/rewrites/rewrite.h"
#include "passes/layer.h"

namespace quench::exec::rewrites {
namespace {

/// The channels of what a layer reads, if the value's type shows that it has them all.
std::optional<Channels> input_channels(const Rewriter& rewriter, const Layer& layer, ValueId x) {
  const Shape& weight = rewriter.constant(layer.weight)->shape();
  const int sum_axis = layer.layout.sum_axis;
  Channels result{.last = layer.channels.last};
  result.count = sum_axis >= 0 ? weight[static_cast<std::size_t>(sum_axis)]
                               : num_elements(Shape{weight[1], layer.layout.groups}).value_or(0);
  const auto& shape = rewriter.graph()[x].type.shape;
  if (!shape || shape->size() < 2) return std::nullopt;
  result.rank = static_cast<std::int64_t>(shape->size());
  const Dim& dim = result.last ? shape->back() : (*shape)[1];
  return dim.value == result.count ? std::optional(result) : std::nullopt;
}

/// Whether what the layer pads with is nothing: a shift would change the padding too.
bool may_shift(const Node& node, const Layer& layer) {
  if (!layer.takes_bias) return false;
  if (layer.kind == ops::WeightKind::Matrix) return true;
  const std::string padding = node.get_string("auto_pad", "NOTSET");
  return (padding == "NOTSET" || padding == "VALID") &&
         std::ranges::all_of(node.get_ints("pads"), [](std::int64_t each) { return each == 0; });
}

struct Chain {
  Affine total;
  ValueId x = kNoValue;  ///< what the first node of the chain reads
  std::vector<NodeId> nodes;
};

/// The operand of a node that is no constant.
ValueId variable_operand(const Rewriter& rewriter, const Node& node) {
  const bool second = node.inputs.size() == 2 && rewriter.graph()[node.inputs[0]].constant;
  return node.inputs[second ? 1 : 0];
}

std::optional<Chain> chain_before(const Rewriter& rewriter, const Node& layer_node,
                                  const Layer& layer) {
  Chain chain{.x = layer_node.inputs[0]};
  const bool shift = may_shift(layer_node, layer);
  while (rewriter.next(chain.x) != kNoNode && rewriter.maker(chain.x) != kNoNode) {
    const NodeId id = rewriter.maker(chain.x);
    const Node& node = rewriter.node(id);
    if (node.inputs.empty() || std::ranges::count(node.inputs, kNoValue) != 0) break;
    const ValueId x = variable_operand(rewriter, node);
    const auto channels = input_channels(rewriter, layer, x);
    auto step = channels ? affine_of(rewriter, node, x, *channels) : std::nullopt;
    if (!step || (step->shifts() && !shift)) break;
    if (!chain.nodes.empty()) step->append(chain.total);
    chain.total = std::move(*step);
    chain.x = x;
    chain.nodes.push_back(id);
  }
  return chain.nodes.empty() || !chain.total.finite() ? std::nullopt : std::optional(chain);
}

void fold_at(Rewriter& rewriter, NodeId id) {
  Node fused = rewriter.node(id);
  const auto layer = layer_of(rewriter, fused);
  if (!layer || layer->kind == ops::WeightKind::TransposedConvolution ||
      fused.get_int("transA", 0) != 0 || rewriter.must_stay(layer->weight)) {
    return;
  }
  const auto chain = chain_before(rewriter, fused, *layer);
  if (!chain) return;
  const Tensor& weight = *rewriter.constant(layer->weight);
  const double alpha =
      layer->kind == ops::WeightKind::Matrix ? fused.get_float("alpha", 1.0F) : 1.0;
  std::vector<double> numbers = to_doubles(weight);
  std::vector<double> shift = layer->shift;
  WeightMap(*layer, weight).for_each([&](std::size_t i, WeightMap::Channels channels) {
    shift[channels.out] += alpha * numbers[i] * chain->total.shift[channels.in];
    numbers[i] *= chain->total.scale[channels.in];
  });
  auto new_weight = rounded(numbers, weight.shape(), weight.dtype());
  auto new_bias = rounded(shift, {layer->channels.count}, weight.dtype());
  if (!new_weight || !new_bias) return;
  const std::string stem = rewriter.graph()[layer->weight].name;
  fused.inputs[0] = chain->x;
  if (chain->total.shifts()) {
    fused.inputs.resize(3, kNoValue);
    fused.inputs[2] = rewriter.add_constant(stem + "_bias", std::move(*new_bias));
    fused.erase("beta");
  }
  fused.inputs[1] = rewriter.replace_constant(layer->weight, std::move(*new_weight), stem);
  rewriter.replace(id, std::move(fused), chain->nodes);
}

}  // namespace

PassReport fold_prescale(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) fold_at(rewriter, id);
    }
  });
}

}  // namespace quench::exec::rewrites
