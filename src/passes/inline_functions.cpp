// SPDX-License-Identifier: Apache-2.0
// Replaces calls of the model's own functions by their bodies.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "passes/rewriter.h"

namespace quench::passes {
namespace {

constexpr std::size_t kMaxDepth = 64;
/// Functions that call each other twice grow as 2^n; no real model comes near this.
constexpr std::size_t kMaxNodes = 1'000'000;

using NameMap = std::map<std::string, std::string, std::less<>>;

class Inliner {
 public:
  explicit Inliner(Model& model) : model_(model) {
    for (const Function& function : model.functions) {
      const auto key = std::pair(function.domain, function.name);
      if (!functions_.emplace(key, &function).second) ambiguous_.push_back(key);
    }
    for_each_graph(model.graph, [&](const Graph& graph) {
      for (const Value& value : graph.values()) names_.insert(value.name);
    });
  }

  PassReport run() {
    expand(model_.graph);
    return std::move(report_);
  }

 private:
  using Key = std::pair<std::string, std::string>;

  void expand(Graph& graph) {
    std::vector<Node> nodes = std::move(graph.nodes);
    graph.nodes.clear();
    for (Node& node : nodes) place(graph, std::move(node));
  }

  /// Adds a node to the graph, or what it calls.
  void place(Graph& graph, Node node) {
    const auto found = functions_.find(Key(node.domain, node.op_type));
    if (found == functions_.end()) {
      for (Graph* inner : mutable_subgraphs(node)) expand(*inner);
      if (++num_nodes_ > kMaxNodes) {
        fail(ErrorKind::BadModel, "its functions expand to more than {} nodes", kMaxNodes);
      }
      graph.nodes.push_back(std::move(node));
      return;
    }
    const Function& function = *found->second;
    check_call(graph, node, function);
    merge_opsets(function);
    stack_.push_back(&function);
    splice(graph, node, function);
    stack_.pop_back();
    ++report_.changes;
  }

  void check_call(const Graph& graph, const Node& call, const Function& function) const {
    const Graph& body = function.body;
    const std::string caller = label(graph, call);
    if (std::ranges::find(stack_, &function) != stack_.end()) {
      fail(ErrorKind::BadModel, "{}: the function '{}' calls itself", caller, function.name);
    }
    if (stack_.size() >= kMaxDepth) {
      fail(ErrorKind::BadModel, "{}: functions call each other more than {} deep", caller,
           kMaxDepth);
    }
    if (std::ranges::find(ambiguous_, Key(call.domain, call.op_type)) != ambiguous_.end()) {
      fail(ErrorKind::Unsupported, "{}: the function '{}' is defined more than once (overloaded)",
           caller, function.name);
    }
    if (call.inputs.size() > body.inputs.size() || call.outputs.size() > body.outputs.size()) {
      fail(ErrorKind::BadModel,
           "{}: the function '{}' takes {} inputs and makes {} outputs, the call has {} and {}",
           caller, function.name, body.inputs.size(), body.outputs.size(), call.inputs.size(),
           call.outputs.size());
    }
  }

  void merge_opsets(const Function& function) {
    for (const auto& [domain, version] : function.opsets) {
      const auto [known, added] = model_.opsets.emplace(domain, version);
      if (added || known->second == version) continue;
      std::string note = format(
          "function '{}' was written for opset {} of domain '{}', the model imports {}; its "
          "operators are read as those of the model",
          function.name, version, domain, known->second);
      if (std::ranges::find(report_.notes, note) == report_.notes.end()) {
        report_.notes.push_back(std::move(note));
      }
    }
  }

  std::string unique(const std::string& stem) {
    std::string name = stem;
    // The counter runs on, so that many calls of one function stay cheap.
    while (!names_.insert(name).second) name = format("{}_{}", stem, ++suffixes_[stem]);
    return name;
  }

  void splice(Graph& graph, const Node& call, const Function& function) {
    const Graph& body = function.body;
    std::vector<ValueId> ids(body.values().size(), kNoValue);
    std::vector<bool> bound(body.values().size(), false);
    const auto bind = [&](ValueId formal, ValueId actual) {
      ids[static_cast<std::size_t>(formal)] = actual;
      bound[static_cast<std::size_t>(formal)] = true;
    };
    for (std::size_t i = 0; i < body.inputs.size(); ++i) bind(body.inputs[i], call.input(i));
    std::vector<std::pair<ValueId, ValueId>> copies;  // outputs that another name has already
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const auto formal = static_cast<std::size_t>(body.outputs[i]);
      if (call.outputs[i] == kNoValue) continue;
      if (bound[formal] || body.values()[formal].constant) {
        copies.emplace_back(body.outputs[i], call.outputs[i]);
      } else {
        bind(body.outputs[i], call.outputs[i]);
      }
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (bound[i]) continue;
      Value value;
      value.name = unique(body.values()[i].name);
      value.constant = body.values()[i].constant;
      if (value.constant) value.type = ValueType::of(*value.constant);
      ids[i] = graph.add_value(std::move(value));
    }
    const NameMap scope = names_of(graph, body, ids);
    for (const Node& node : body.nodes) place(graph, instance(node, call, function, ids, scope));
    for (const auto& [from, to] : copies) add_identity(graph, ids, from, to);
  }

  static NameMap names_of(const Graph& graph, const Graph& body, const std::vector<ValueId>& ids) {
    NameMap scope;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != kNoValue) scope[body.values()[i].name] = graph[ids[i]].name;
    }
    return scope;
  }

  static void add_identity(Graph& graph, const std::vector<ValueId>& ids, ValueId from,
                           ValueId to) {
    const ValueId source = ids[static_cast<std::size_t>(from)];
    if (source == kNoValue) {
      fail(ErrorKind::BadModel, "'{}' is the function input the call left out", graph[to].name);
    }
    Node copy;
    copy.op_type = "Identity";
    copy.inputs = {source};
    copy.outputs = {to};
    graph.nodes.push_back(std::move(copy));
  }

  /// A node of the body with the caller's values and attributes.
  Node instance(const Node& node, const Node& call, const Function& function,
                const std::vector<ValueId>& ids, const NameMap& scope) {
    Node result = node;
    if (!call.name.empty() && !node.name.empty()) result.name = call.name + "/" + node.name;
    const auto rename = [&](ValueId& id) {
      if (id != kNoValue) id = ids[static_cast<std::size_t>(id)];
    };
    std::ranges::for_each(result.inputs, rename);
    std::ranges::for_each(result.outputs, rename);
    bind_attributes(result, call, function, scope, 0);
    return result;
  }

  void bind_attributes(Node& node, const Node& call, const Function& function, const NameMap& scope,
                       std::size_t depth) {
    // Before the caller's attributes come in: a graph among those has the caller's names.
    for (Graph* inner : mutable_subgraphs(node)) adopt(*inner, call, function, scope, depth + 1);
    std::vector<Attribute> bound;
    for (Attribute& attribute : node.attributes) {
      if (attribute.reference.empty()) {
        bound.push_back(std::move(attribute));
        continue;
      }
      const Attribute* given = call.find(attribute.reference);
      const auto& defaults = function.attribute_defaults;
      const auto standard = std::ranges::find(defaults, attribute.reference, &Attribute::name);
      if (given == nullptr && standard != defaults.end()) given = &*standard;
      if (given == nullptr) continue;  // left out by the caller: left out here
      bound.push_back(*given);
      bound.back().name = attribute.name;
    }
    node.attributes = std::move(bound);
  }

  /// Gives the values of a graph inside the body names of their own, and resolves its attributes.
  void adopt(Graph& graph, const Node& call, const Function& function, NameMap scope,
             std::size_t depth) {
    if (depth > kMaxDepth) {
      fail(ErrorKind::BadModel, "function '{}': graphs are nested more than {} deep", function.name,
           kMaxDepth);
    }
    std::vector<std::string> new_names;
    for (const Value& value : graph.values()) {
      const auto outer = scope.find(value.name);
      if (value.captured && outer == scope.end()) {
        fail(ErrorKind::BadModel, "function '{}': '{}' is an input the call left out",
             function.name, value.name);
      }
      new_names.push_back(value.captured ? outer->second : unique(value.name));
    }
    const std::string marker = unique("inlined");  // no old name may stand in a new one's way
    for (std::size_t i = 0; i < new_names.size(); ++i) {
      scope[graph.values()[i].name] = new_names[i];
      graph.rename(static_cast<ValueId>(i), format("{}:{}", marker, i));
    }
    for (std::size_t i = 0; i < new_names.size(); ++i) {
      graph.rename(static_cast<ValueId>(i), new_names[i]);
    }
    for (Node& node : graph.nodes) bind_attributes(node, call, function, scope, depth);
  }

  Model& model_;
  std::map<Key, const Function*> functions_;
  std::vector<Key> ambiguous_;
  std::unordered_set<std::string> names_;
  std::map<std::string, std::int64_t> suffixes_;
  std::vector<const Function*> stack_;
  std::size_t num_nodes_ = 0;
  PassReport report_;
};

}  // namespace

PassReport inline_functions(Model& model, const PassOptions& /*options*/) {
  if (model.functions.empty()) return {};
  PassReport report = Inliner(model).run();
  model.functions.clear();
  return report;
}

}  // namespace quench::passes
