// SPDX-License-Identifier: Apache-2.0
// Says why a node cannot read a value: unknown, made too late, or part of a cycle.
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

using Makers = std::unordered_map<std::string_view, int>;

Makers makers_of(const NodeList& nodes) {
  Makers makers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].output()) makers.try_emplace(output, i);
  }
  return makers;
}

/// Whether node `from` needs, directly or not, what node `target` makes.
bool depends_on(const NodeList& nodes, const Makers& makers, int from, int target) {
  std::vector<bool> seen(static_cast<std::size_t>(nodes.size()), false);
  std::vector<int> open{from};
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (node == target) return true;
    if (seen[static_cast<std::size_t>(node)]) continue;
    seen[static_cast<std::size_t>(node)] = true;
    for (const std::string& input : nodes[node].input()) {
      const auto maker = makers.find(input);
      if (!input.empty() && maker != makers.end()) open.push_back(maker->second);
    }
  }
  return false;
}

}  // namespace

std::string label(const NodeProto& node) {
  if (!node.name().empty()) return format("node '{}'", node.name());
  return format("{} node that makes '{}'", node.op_type(),
                node.output_size() == 0 ? "" : node.output(0));
}

void fail_unmade(const Scope& scope, const std::string& name) {
  for (const Scope* each = &scope; each != nullptr; each = each->outer) {
    if (each->at >= each->nodes->size()) continue;
    const Makers makers = makers_of(*each->nodes);
    const auto maker = makers.find(name);
    if (maker == makers.end()) continue;
    const std::string later = label((*each->nodes)[maker->second]);
    if (depends_on(*each->nodes, makers, maker->second, each->at)) {
      fail(ErrorKind::BadModel,
           "the graph has a cycle: it reads '{}', which the {} makes out of its result; export the "
           "model again",
           name, later);
    }
    fail(ErrorKind::BadModel,
         "it reads '{}' before the {} makes it: nodes must stand in the order in which they run; "
         "sort the graph or export the model again",
         name, later);
  }
  fail(ErrorKind::BadModel,
       "it reads '{}', which no node, input or initializer makes; export the model again", name);
}

}  // namespace quench::onnx
