// SPDX-License-Identifier: Apache-2.0
// Activations: what they clamp to, and how a layer that they are fused with names them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/ops.h"

namespace quench::ops {

std::optional<Bounds> relu_bounds(const NodeView& /*view*/) { return Bounds{.min = 0}; }

std::optional<Bounds> clip_bounds(const NodeView& view) {
  constexpr std::int64_t kBoundsAreInputs = 11;
  const Node& node = view.node;
  Bounds bounds;
  if (view.opset < kBoundsAreInputs) {
    if (node.find("min") != nullptr) bounds.min = double{node.get_float("min", 0)};
    if (node.find("max") != nullptr) bounds.max = double{node.get_float("max", 0)};
    return bounds;
  }
  for (const std::size_t i : {1U, 2U}) {
    if (node.input(i) == kNoValue) continue;
    const auto bound = view.number(node.input(i));
    if (!bound) return std::nullopt;
    (i == 1 ? bounds.min : bounds.max) = *bound;
  }
  return bounds;
}

std::optional<Epilogue> clip_epilogue(const NodeView& view) {
  const auto bounds = clip_bounds(view);
  if (!bounds) return std::nullopt;
  const auto least = static_cast<float>(bounds->min.value_or(std::numeric_limits<float>::lowest()));
  const auto most = static_cast<float>(bounds->max.value_or(std::numeric_limits<float>::max()));
  if (std::isnan(least) || std::isnan(most)) return std::nullopt;
  // Where the least value lies above the greatest, every result is the greatest.
  return Epilogue{.name = "clip", .alpha = std::min(least, most), .beta = most};
}

std::optional<Epilogue> gelu_epilogue(const NodeView& view) {
  const std::string form = view.node.get_string("approximate", "none");
  if (form == "none") return Epilogue{.name = "gelu"};
  if (form == "tanh") return Epilogue{.name = "gelu_tanh"};
  return std::nullopt;
}

std::optional<Epilogue> swish_epilogue(const NodeView& view) {
  if (view.node.get_float("alpha", 1.0F) != 1.0F) return std::nullopt;
  return Epilogue{.name = "swish"};
}

std::optional<Epilogue> epilogue_of(const NodeView& view) {
  const OpInfo* op = find_op("", view.node.op_type);
  if (op == nullptr || op->facts.epilogue.name.empty()) return std::nullopt;
  if (op->facts.read_epilogue != nullptr) return op->facts.read_epilogue(view);
  Epilogue result = op->facts.epilogue;
  result.alpha = view.node.get_float("alpha", result.alpha);
  result.beta = view.node.get_float("beta", result.beta);
  return result;
}

}  // namespace quench::ops
