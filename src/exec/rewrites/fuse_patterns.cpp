// SPDX-License-Identifier: Apache-2.0
// Turns what exporters write out in small operators back into one operator. The result is for our
// engine only: it uses operators newer than the model's opset, and our own.
#include "exec/rewrites/patterns.h"

namespace quench::exec::rewrites {

PassReport fuse_patterns(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (!rewriter.alive(id)) continue;
      if (fuse_gate(rewriter, id) || fuse_layer_norm(rewriter, id)) continue;
      if (fuse_gather_rows(rewriter, id)) continue;
      if (!fuse_softmax(rewriter, id)) fuse_relu(rewriter, id);
    }
  });
}

}  // namespace quench::exec::rewrites
