// SPDX-License-Identifier: Apache-2.0
// Computes Cast nodes of constants: weights that are stored in half precision are weights too.
#include "passes/rewriter.h"

namespace quench::passes {
namespace {

void fold_at(Rewriter& rewriter, NodeId id) {
  const Node* cast = rewriter.as(id, "Cast");
  if (cast == nullptr || cast->inputs.size() != 1) return;
  const Tensor* constant = rewriter.constant(cast->inputs[0]);
  const auto to = static_cast<DType>(cast->get_int("to", 0));
  const ValueId result = cast->outputs[0];
  if (constant == nullptr || !is_real(constant->dtype()) || !is_real(to) ||
      !rewriter.may_rename(result)) {
    return;
  }
  const std::string name = rewriter.graph()[result].name;
  // A weight that is not in memory need not be there as another type either.
  Tensor cast_weight = constant->is_stored()
                           ? Tensor::made(to, constant->shape(),
                                          [from = *constant, to] { return convert(from, to); })
                           : convert(*constant, to);
  const ValueId folded = rewriter.add_constant(name, std::move(cast_weight));
  rewriter.merge(result, folded, id);
}

}  // namespace

PassReport fold_casts(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) fold_at(rewriter, id);
    }
  });
}

}  // namespace quench::passes
