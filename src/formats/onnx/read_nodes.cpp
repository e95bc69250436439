// SPDX-License-Identifier: Apache-2.0
// Reads nodes in their order and ties their inputs to values that exist already.
#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

class NodeReader {
 public:
  NodeReader(NodeList& nodes, Graph& graph, const Scope* outer, Source& source)
      : nodes_(nodes), graph_(graph), source_(source), scope_{&graph, &nodes, 0, outer} {}

  void read_all() {
    graph_.nodes.reserve(graph_.nodes.size() + static_cast<std::size_t>(nodes_.size()));
    for (; scope_.at < nodes_.size(); ++scope_.at) {
      NodeProto& proto = nodes_[scope_.at];
      try {
        graph_.nodes.push_back(read(proto));
      } catch (Error& error) {
        throw error.in(label(proto));
      }
    }
  }

 private:
  Node read(NodeProto& proto) {
    Node node;
    node.name = proto.name();
    node.op_type = proto.op_type();
    node.domain = plain_domain(proto.domain());
    if (node.op_type.empty()) fail(ErrorKind::BadModel, "it has no operator type");
    for (const std::string& name : proto.input()) node.inputs.push_back(input(name));
    for (AttributeProto& each : *proto.mutable_attribute()) {
      node.attributes.push_back(read_attribute(each, scope_, source_));
    }
    proto.clear_attribute();
    for (const std::string& name : proto.output()) node.outputs.push_back(output(name));
    node.foreign = rest_of(proto);
    return node;
  }

  ValueId input(const std::string& name) {
    if (name.empty()) return kNoValue;
    const ValueId id = resolve(graph_, scope_.outer, name);
    if (id == kNoValue) fail_unmade(scope_, name);
    return id;
  }

  ValueId output(const std::string& name) {
    if (name.empty()) return kNoValue;
    if (graph_.find(name) != kNoValue) {
      fail(ErrorKind::BadModel,
           "it makes '{}', but a value of that name exists already; every value needs its own name",
           name);
    }
    Value value;
    value.name = name;
    return graph_.add_value(std::move(value));
  }

  /// The inputs and outputs stay in the message: later errors name them.
  static std::string rest_of(const NodeProto& proto) {
    NodeProto rest;
    if (proto.has_doc_string()) rest.set_doc_string(proto.doc_string());
    if (proto.has_overload()) rest.set_overload(proto.overload());
    *rest.mutable_unknown_fields() = proto.unknown_fields();
    return rest.SerializeAsString();
  }

  NodeList& nodes_;
  Graph& graph_;
  Source& source_;
  Scope scope_;
};

}  // namespace

ValueId resolve(Graph& graph, const Scope* outer, const std::string& name) {
  const ValueId known = graph.find(name);
  if (known != kNoValue || name.empty()) return known;
  for (const Scope* scope = outer; scope != nullptr; scope = scope->outer) {
    if (scope->graph->find(name) == kNoValue) continue;
    Value value;
    value.name = name;
    value.captured = true;
    return graph.add_value(std::move(value));
  }
  return kNoValue;
}

void read_nodes(NodeList& nodes, Graph& graph, const Scope* outer, Source& source) {
  sort_nodes(nodes);
  NodeReader(nodes, graph, outer, source).read_all();
}

std::string plain_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

}  // namespace quench::onnx
