// SPDX-License-Identifier: Apache-2.0
// The rules every graph keeps: names, order, references.
#include <algorithm>
#include <vector>

#include "base/format.h"
#include "quench/model.h"

namespace quench {
namespace {

/// Deeper nesting has no use and would let a file exhaust the stack.
constexpr int kMaxDepth = 64;

class Verifier {
 public:
  void check(const Graph& graph) {
    if (scopes_.size() >= kMaxDepth) {
      fail(ErrorKind::BadModel, "graphs are nested more than {} deep", kMaxDepth);
    }
    std::vector<bool> ready(graph.values().size(), false);
    start_values(graph, ready);
    scopes_.push_back({&graph, &ready});
    for (const Node& node : graph.nodes) {
      try {
        check_node(graph, node, ready);
      } catch (Error& error) {
        throw error.in(label(graph, node));
      }
    }
    for (const ValueId id : graph.outputs) check_output(graph, id, ready);
    scopes_.pop_back();
  }

 private:
  struct Scope {
    const Graph* graph;
    const std::vector<bool>* ready;
  };

  static void check_id(const Graph& graph, ValueId id) {
    if (id < 0 || static_cast<std::size_t>(id) >= graph.values().size()) {
      fail(ErrorKind::Internal, "value id {} does not exist", id);
    }
  }

  void start_values(const Graph& graph, std::vector<bool>& ready) const {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const Value& value = graph.values()[i];
      if (value.captured && !outer_has(value.name)) {
        fail(ErrorKind::BadModel, "'{}' is read before any node or graph around it makes it",
             value.name);
      }
      // A constant of a kind that only the format understands is one all the same.
      ready[i] = value.constant.has_value() || value.captured || !value.constant_foreign.empty();
    }
    for (const ValueId id : graph.inputs) {
      check_id(graph, id);
      ready[static_cast<std::size_t>(id)] = true;
    }
  }

  bool outer_has(const std::string& name) const {
    return std::ranges::any_of(scopes_, [&](const Scope& scope) {
      const ValueId id = scope.graph->find(name);
      return id != kNoValue && (*scope.ready)[static_cast<std::size_t>(id)];
    });
  }

  void check_node(const Graph& graph, const Node& node, std::vector<bool>& ready) {
    if (node.op_type.empty()) fail(ErrorKind::BadModel, "the node has no operator type");
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      check_id(graph, id);
      if (!ready[static_cast<std::size_t>(id)]) fail_unready(graph, id);
    }
    for (const Graph* inner : subgraphs(node)) check(*inner);
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      check_id(graph, id);
      if (ready[static_cast<std::size_t>(id)]) {
        fail(ErrorKind::BadModel, "it makes '{}', which exists already", graph[id].name);
      }
      ready[static_cast<std::size_t>(id)] = true;
    }
  }

  [[noreturn]] static void fail_unready(const Graph& graph, ValueId id) {
    const NodeId maker = Uses(graph).producer[static_cast<std::size_t>(id)];
    if (maker < 0) {
      fail(ErrorKind::BadModel, "it reads '{}', which nothing makes", graph[id].name);
    }
    fail(ErrorKind::BadModel,
         "it reads '{}' before the {} makes it: nodes must stand in the order in which they run "
         "and may not form a cycle; export the model again",
         graph[id].name, label(graph, graph.nodes[static_cast<std::size_t>(maker)]));
  }

  static void check_output(const Graph& graph, ValueId id, const std::vector<bool>& ready) {
    check_id(graph, id);
    if (!ready[static_cast<std::size_t>(id)]) {
      fail(ErrorKind::BadModel, "nothing makes the graph output '{}'", graph[id].name);
    }
  }

  std::vector<Scope> scopes_;
};

}  // namespace

void verify(const Model& model) {
  Verifier().check(model.graph);
  for (const Function& function : model.functions) {
    try {
      Verifier().check(function.body);
    } catch (Error& error) {
      throw error.in(format("function '{}'", function.name));
    }
  }
}

std::int64_t Model::opset(std::string_view op_domain) const {
  const auto found = opsets.find(std::string(op_domain));
  return found == opsets.end() ? 0 : found->second;
}

}  // namespace quench
