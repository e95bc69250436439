// SPDX-License-Identifier: Apache-2.0
// ONNX messages to Quench's graph and back. Readers consume their message; what they do not model
// goes into `foreign` strings, and the writers merge it back.
#pragma once

#include <google/protobuf/message_lite.h>
#include <google/protobuf/repeated_field.h>

#include <string>

#include "formats/onnx/source.h"
#include "formats/onnx/tensors.h"
#include "quench/model.h"

namespace quench::onnx {

class AttributeProto;
class GraphProto;
class ModelProto;
class NodeProto;
class TypeProto;
class ValueInfoProto;

using NodeList = google::protobuf::RepeatedPtrField<NodeProto>;

/// A graph being read: what it holds so far, and the node that is being read.
struct Scope {
  const Graph* graph = nullptr;
  const NodeList* nodes = nullptr;
  int at = 0;
  const Scope* outer = nullptr;
};

Model read_model(ModelProto& proto, Source& source);
Graph read_graph(GraphProto& proto, const Scope* outer, Source& source);
/// Puts nodes into an order in which they can run, if they are in none and there is one: ONNX asks
/// for it, but some tools write what only ONNX Runtime, which sorts, can read. Others stay.
void sort_nodes(NodeList& nodes);
/// Appends nodes and the values they make; names are looked up here, then in the outer graphs.
void read_nodes(NodeList& nodes, Graph& graph, const Scope* outer, Source& source);
/// The graph's value called `name`, or a captured one of an outer graph, or kNoValue.
ValueId resolve(Graph& graph, const Scope* outer, const std::string& name);
Attribute read_attribute(AttributeProto& proto, const Scope& scope, Source& source);
void read_value_info(ValueInfoProto& proto, Value& value);
/// How messages name a node that is not in a graph yet.
std::string label(const NodeProto& node);
/// Throws the reason why the node at `scope.at` cannot read `name`: nobody makes it, a later node
/// does, or there is a cycle.
[[noreturn]] void fail_unmade(const Scope& scope, const std::string& name);

void write_model(const Model& model, Store& store, ModelProto& proto);
void write_graph(const Graph& graph, Store& store, GraphProto& proto);
void write_node(const Graph& graph, const Node& node, Store& store, NodeProto& proto);
void write_attribute(const Attribute& attribute, Store& store, AttributeProto& proto);
void write_value_info(const Value& value, ValueInfoProto& proto);

/// Fills a message with what a `foreign` string kept of it; another format's is passed over.
void parse_foreign(const std::string& foreign, google::protobuf::MessageLite& message);
/// "ai.onnx" is another name of ONNX's own domain.
std::string plain_domain(const std::string& domain);

}  // namespace quench::onnx
