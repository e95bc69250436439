// SPDX-License-Identifier: Apache-2.0
// Softmax between two products: one AttentionNode with the attribute `scale`. After the products of
// bytes are found: what is left here is float.
#include "exec/rewrites/rewrite.h"
#include "passes/match.h"

namespace quench::exec::rewrites {
namespace {

/// Batch, heads, rows, columns.
constexpr std::int64_t kRank = 4;

struct Scores {
  ValueId product = kNoValue;
  ValueId mask = kNoValue;
  float scale = 1;
};

class AttentionRule {
 public:
  AttentionRule(Rewriter& rewriter, NodeId root)
      : rewriter_(rewriter), matcher_(rewriter), root_(root) {}

  bool run() {
    const Node* last = rewriter_.as(root_, "MatMul");
    if (last == nullptr || !takes_softmax(last->inputs[0])) return false;
    const Node* first = matcher_.inner(scores_.product, "MatMul");
    if (first == nullptr || !is_real_of_rank(last->inputs[1]) || !fits_mask()) return false;
    for (const ValueId id : first->inputs) {
      if (!is_real_of_rank(id)) return false;
    }
    Node fused;
    fused.name = last->name;
    fused.op_type = "ScaledAttention";
    fused.domain = kEngineDomain;
    fused.inputs = AttentionNode{.queries = first->inputs[0],
                                 .keys = first->inputs[1],
                                 .values = last->inputs[1],
                                 .mask = scores_.mask}
                       .inputs();
    fused.outputs = last->outputs;
    fused.set("scale", scores_.scale);
    rewriter_.replace(root_, std::move(fused), matcher_.taken());
    return true;
  }

 private:
  std::int64_t rank(ValueId id) const {
    const ValueType& type = rewriter_.graph()[id].type;
    return type.dtype == DType::Float32 && type.shape ? std::ssize(*type.shape) : -1;
  }
  bool is_real_of_rank(ValueId id) const { return rank(id) == kRank; }
  bool fits_mask() const {
    return scores_.mask == kNoValue || (rank(scores_.mask) >= 0 && rank(scores_.mask) <= kRank);
  }

  bool takes_softmax(ValueId value) {
    const NodeId maker = rewriter_.maker(value);
    if (maker == kNoNode || rewriter_.next(value) != root_ || !rewriter_.alive(maker)) return false;
    const Node& node = rewriter_.node(maker);
    const bool masked = node.domain == kEngineDomain && node.op_type == "ScaledSoftmax";
    if (!masked && (rewriter_.as(maker, "Softmax") == nullptr || !is_last_axis(node))) return false;
    matcher_.take(maker);
    if (masked) {
      scores_ = {node.inputs[0], node.input(1), node.get_float("scale", 1.0F)};
    } else {
      scores_.product = node.inputs[0];
      take_mask();
    }
    return true;
  }

  bool is_last_axis(const Node& node) const {
    const std::int64_t axis = node.get_int("axis", rewriter_.opset() < 13 ? 1 : -1);
    return is_real_of_rank(node.inputs[0]) && (axis == -1 || axis == kRank - 1);
  }

  /// An Add in front of the Softmax, one of whose operands is the product.
  void take_mask() {
    const Node* add = rewriter_.maker_as(scores_.product, "Add");
    if (add == nullptr || rewriter_.opset() < 7) return;
    for (const std::size_t side : {0U, 1U}) {
      if (rewriter_.maker_as(add->inputs[side], "MatMul") == nullptr) continue;
      if (matcher_.inner(scores_.product, "Add") == nullptr) return;
      scores_.product = add->inputs[side];
      scores_.mask = add->inputs[1 - side];
      return;
    }
  }

  Rewriter& rewriter_;
  Matcher matcher_;
  NodeId root_;
  Scores scores_;
};

}  // namespace

PassReport fuse_attention(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) AttentionRule(rewriter, id).run();
    }
  });
}

}  // namespace quench::exec::rewrites
