// SPDX-License-Identifier: Apache-2.0
// Concat on integers.
#include "lower/qoperator.h"

namespace quench::lower {

std::optional<Node> qlinear_concat(const QSite& site) {
  if (!site.output) return std::nullopt;
  Node node = site.as("QLinearConcat", kMicrosoft);
  append_params(node.inputs, *site.output);
  for (const auto& input : site.inputs) append(node.inputs, *input);
  return node;
}

}  // namespace quench::lower
