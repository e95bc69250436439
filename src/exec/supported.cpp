// SPDX-License-Identifier: Apache-2.0
// What the engine can run, told from the list of kernels without loading it.
#include <algorithm>
#include <array>
#include <set>

#include "base/format.h"
#include "exec/fused.h"
#include "exec/session_impl.h"
#include "quench/session.h"

namespace quench {
namespace exec {

std::span<const KernelRow> kernel_rows() noexcept {
  static constexpr auto kRows = std::to_array<KernelRow>({
#define QUENCH_KERNEL(op) {"", #op},
#define QUENCH_KERNEL_IN(domain, op, id) {domain, #op},
#include "exec/kernels.inc"
#undef QUENCH_KERNEL
#undef QUENCH_KERNEL_IN
  });
  return kRows;
}

}  // namespace exec

namespace {

std::string qualified(std::string_view domain, std::string_view op) {
  return domain.empty() ? std::string(op) : format("{}.{}", domain, op);
}

/// Operators that the model itself defines are replaced by their bodies before they run.
bool is_function(const Model& model, const Node& node) {
  return std::ranges::any_of(model.functions, [&](const Function& function) {
    return function.name == node.op_type && function.domain == node.domain;
  });
}

}  // namespace

std::vector<std::string> supported_operators() {
  std::set<std::string> names;
  for (const exec::KernelRow& row : exec::kernel_rows()) {
    if (row.domain != exec::kEngineDomain) names.insert(qualified(row.domain, row.op));
  }
  return {names.begin(), names.end()};
}

std::vector<UnsupportedNode> find_unsupported(const Model& model) {
  const std::vector<std::string> known = supported_operators();
  std::vector<UnsupportedNode> result;
  const auto visit = [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
      if (std::ranges::binary_search(known, qualified(domain, node.op_type))) continue;
      if (is_function(model, node)) continue;
      result.push_back({.node = label(graph, node),
                        .op_type = qualified(domain, node.op_type),
                        .reason = "the engine has no kernel for this operator"});
    }
  };
  for_each_graph(model.graph, visit);
  for (const Function& function : model.functions) for_each_graph(function.body, visit);
  return result;
}

}  // namespace quench
