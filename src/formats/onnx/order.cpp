// SPDX-License-Identifier: Apache-2.0
// The order of nodes: sorts them, and says why one cannot read a value.
#include <functional>
#include <queue>
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

/// What a node reads, and the graphs inside it.
void add_reads(const NodeProto& node, std::vector<std::string_view>& names) {
  names.insert(names.end(), node.input().begin(), node.input().end());
  for (const AttributeProto& attribute : node.attribute()) {
    for (const NodeProto& inner : attribute.g().node()) add_reads(inner, names);
    for (const GraphProto& graph : attribute.graphs()) {
      for (const NodeProto& inner : graph.node()) add_reads(inner, names);
    }
  }
}

/// Who reads what each node makes, and of how many nodes each waits.
struct Waits {
  std::vector<std::vector<int>> readers;
  std::vector<int> open;
  bool sorted = true;

  explicit Waits(const NodeList& nodes)
      : readers(static_cast<std::size_t>(nodes.size())), open(readers.size(), 0) {
    const Makers makers = makers_of(nodes);
    std::vector<std::string_view> names;
    for (int i = 0; i < nodes.size(); ++i) {
      names.clear();
      add_reads(nodes[i], names);
      for (const std::string_view name : names) {
        const auto maker = makers.find(name);
        if (name.empty() || maker == makers.end()) continue;
        readers[static_cast<std::size_t>(maker->second)].push_back(i);
        ++open[static_cast<std::size_t>(i)];
        sorted = sorted && maker->second < i;
      }
    }
  }
};

}  // namespace

void sort_nodes(NodeList& nodes) {
  Waits waits(nodes);
  if (waits.sorted) return;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (waits.open[static_cast<std::size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int reader : waits.readers[static_cast<std::size_t>(next)]) {
      if (--waits.open[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
    }
  }
  if (std::ssize(order) != nodes.size()) return;  // a cycle, which the reader tells of
  NodeList sorted;
  for (const int index : order) sorted.Add()->Swap(&nodes[index]);
  nodes.Swap(&sorted);
}

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
         "it reads '{}' before the {} makes it, and the nodes cannot be sorted: there is a cycle "
         "among them; export the model again",
         name, later);
  }
  fail(ErrorKind::BadModel,
       "it reads '{}', which no node, input or initializer makes; export the model again", name);
}

}  // namespace quench::onnx
