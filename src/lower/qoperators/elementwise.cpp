// SPDX-License-Identifier: Apache-2.0
// Operators on integers that read one or several tensors element by element.
#include "lower/qoperator.h"

namespace quench::lower {
namespace {

/// Every operand with its scale, then the scale of the result.
std::optional<Node> elementwise(const QSite& site, std::string op_type) {
  if (!site.output) return std::nullopt;
  Node node = site.as(std::move(op_type), kMicrosoft);
  for (const auto& input : site.inputs) append(node.inputs, *input);
  append_params(node.inputs, *site.output);
  return node;
}

}  // namespace

std::optional<Node> qlinear_add(const QSite& site) { return elementwise(site, "QLinearAdd"); }
std::optional<Node> qlinear_mul(const QSite& site) { return elementwise(site, "QLinearMul"); }

std::optional<Node> qlinear_sigmoid(const QSite& site) {
  return elementwise(site, "QLinearSigmoid");
}

std::optional<Node> qlinear_leaky_relu(const QSite& site) {
  return elementwise(site, "QLinearLeakyRelu");
}

/// Softmax changed with version 13, so the node says which rules it follows.
std::optional<Node> qlinear_softmax(const QSite& site) {
  auto node = elementwise(site, "QLinearSoftmax");
  if (node) {
    node->set("axis", site.node.get_int("axis", site.opset < 13 ? 1 : -1));
    node->set("opset", site.opset);
  }
  return node;
}

}  // namespace quench::lower
