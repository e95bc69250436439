// SPDX-License-Identifier: Apache-2.0
// Reads activations out of nodes.
#include "exec/rewrites/activation.h"

#include "passes/hard_gate.h"

namespace quench::exec::rewrites {
namespace {

std::optional<Activation> gelu(const Node& node) {
  const std::string form = node.get_string("approximate", "none");
  if (form == "none") return Activation{.name = "gelu"};
  if (form == "tanh") return Activation{.name = "gelu_tanh"};
  return std::nullopt;
}

std::optional<Activation> swish(const Node& node) {
  if (node.get_float("alpha", 1.0F) != 1.0F) return std::nullopt;
  return Activation{.name = "swish"};
}

}  // namespace

std::optional<Activation> activation_of(const Rewriter& rewriter, const Node& node) {
  const std::string& op = node.op_type;
  const bool known = node.domain.empty() || node.domain == kEngineDomain;
  if (!known || node.outputs.size() != 1) return std::nullopt;
  if (op == "Swish") return swish(node);
  if (op == "Relu") return Activation{.name = "relu"};
  if (op == "Sigmoid") return Activation{.name = "sigmoid"};
  if (op == "Tanh") return Activation{.name = "tanh"};
  if (op == "HardSwish") return Activation{.name = "hard_swish"};
  if (op == "Gelu") return gelu(node);
  if (op == "LeakyRelu") {
    return Activation{.name = "leaky_relu", .alpha = node.get_float("alpha", 0.01F)};
  }
  if (op == "HardSigmoid") {
    return Activation{.name = "hard_sigmoid",
                      .alpha = node.get_float("alpha", 0.2F),
                      .beta = node.get_float("beta", 0.5F)};
  }
  if (op != "Clip") return std::nullopt;
  const auto bounds = clip_bounds(rewriter, node);
  if (!bounds) return std::nullopt;
  return Activation{.name = "clip", .alpha = bounds->first, .beta = bounds->second};
}

}  // namespace quench::exec::rewrites
