// SPDX-License-Identifier: Apache-2.0
// Raises the version of ONNX's own operators.
#include "base/format.h"
#include "quench/lower.h"

namespace quench {

void lift_opset(Model& model, std::int64_t opset) {
  if (model.opset() >= opset) return;
  model.opsets[""] = opset;
}

}  // namespace quench
