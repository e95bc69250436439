// SPDX-License-Identifier: Apache-2.0
// The order in which a model is made ready to compile.
#include "exec/engine/prepare.h"

namespace quench::exec {

Graph prepare(Model model, const SessionOptions& options, CompileOptions& compile) {
  infer_types(model);
  compile.opsets = model.opsets;
  (void)options;
  fold_constants(model.graph, compile);
  return std::move(model.graph);
}

}  // namespace quench::exec
