// SPDX-License-Identifier: Apache-2.0
// Conv on integers.
#include "lower/qoperator.h"

namespace quench::lower {

std::optional<Node> qlinear_conv(const QSite& site) {
  const QTensor& weight = *site.inputs[1];
  if (!site.output || !site.bias || weight.axis > 0) return std::nullopt;
  Node node = site.as("QLinearConv", "");
  append(node.inputs, *site.inputs[0]);
  append(node.inputs, weight);
  append_params(node.inputs, *site.output);
  if (*site.bias != kNoValue) node.inputs.push_back(*site.bias);
  return node;
}

}  // namespace quench::lower
