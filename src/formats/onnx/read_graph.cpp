// SPDX-License-Identifier: Apache-2.0
// Reads a graph: inputs, constants, nodes, outputs, then what the file declares of other values.
#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

using ValueInfoList = google::protobuf::RepeatedPtrField<ValueInfoProto>;

void read_inputs(ValueInfoList& list, Graph& graph) {
  for (ValueInfoProto& proto : list) {
    Value value;
    value.name = proto.name();
    if (value.name.empty()) fail(ErrorKind::BadModel, "a graph input has no name");
    if (graph.find(value.name) != kNoValue) {
      fail(ErrorKind::BadModel, "two graph inputs are called '{}'", value.name);
    }
    read_value_info(proto, value);
    graph.inputs.push_back(graph.add_value(std::move(value)));
  }
}

/// The value that a constant belongs to: a new one, or the input whose default it is.
Value& constant_value(Graph& graph, const std::string& name) {
  if (name.empty()) fail(ErrorKind::BadModel, "an initializer has no name");
  ValueId id = graph.find(name);
  if (id == kNoValue) {
    Value value;
    value.name = name;
    id = graph.add_value(std::move(value));
  }
  Value& value = graph[id];
  if (value.constant || !value.constant_foreign.empty()) {
    fail(ErrorKind::BadModel, "two initializers are called '{}'", name);
  }
  return value;
}

/// A constant Quench cannot hold is kept as a graph of one initializer.
std::string as_foreign(TensorProto& proto, const Source& source) {
  restore_data(proto, source);
  GraphProto holder;
  holder.add_initializer()->Swap(&proto);
  return holder.SerializeAsString();
}

void read_initializer(TensorProto& proto, Graph& graph, Source& source) {
  Value& value = constant_value(graph, proto.name());
  try {
    auto read = read_tensor(proto, source);
    if (!read) {
      value.constant_foreign = as_foreign(proto, source);
      return;
    }
    const bool is_input = value.type.kind != ValueType::Kind::Unknown;
    if (!is_input) value.type = ValueType::of(read->tensor);
    value.constant = std::move(read->tensor);
    value.form = read->form;
    clear_data(proto);
    proto.clear_name();
    value.constant_foreign = proto.SerializeAsString();
  } catch (Error& error) {
    throw error.in(format("initializer '{}'", value.name));
  }
}

void read_constants(GraphProto& proto, Graph& graph, Source& source) {
  for (TensorProto& each : *proto.mutable_initializer()) read_initializer(each, graph, source);
  for (SparseTensorProto& each : *proto.mutable_sparse_initializer()) {
    Value& value = constant_value(graph, each.values().name());
    GraphProto holder;
    holder.add_sparse_initializer()->Swap(&each);
    value.constant_foreign = holder.SerializeAsString();
  }
  proto.clear_initializer();
  proto.clear_sparse_initializer();
}

void read_outputs(GraphProto& proto, Graph& graph, const Scope* outer) {
  for (ValueInfoProto& info : *proto.mutable_output()) {
    const ValueId id = resolve(graph, outer, info.name());
    if (id == kNoValue) {
      fail(ErrorKind::BadModel, "no node, input or initializer makes the graph output '{}'",
           info.name());
    }
    graph.outputs.push_back(id);
    // Inputs are the first values; the declaration of one that is handed through stands already.
    const bool is_input = static_cast<std::size_t>(id) < graph.inputs.size();
    if (!is_input && info.has_type()) read_value_info(info, graph[id]);
  }
}

/// Declarations of values that are not there stay in the list.
void read_declarations(ValueInfoList& list, Graph& graph) {
  std::vector<bool> done(graph.values().size(), false);
  for (const ValueId id : graph.inputs) done[static_cast<std::size_t>(id)] = true;
  for (const ValueId id : graph.outputs) done[static_cast<std::size_t>(id)] = true;
  ValueInfoList rest;
  for (ValueInfoProto& proto : list) {
    const ValueId id = graph.find(proto.name());
    if (id == kNoValue) {
      rest.Add()->Swap(&proto);
      continue;
    }
    if (done[static_cast<std::size_t>(id)] || graph[id].captured) continue;
    done[static_cast<std::size_t>(id)] = true;
    read_value_info(proto, graph[id]);
    graph[id].declared = true;
  }
  list.Swap(&rest);
}

}  // namespace

Graph read_graph(GraphProto& proto, const Scope* outer, Source& source) {
  Graph graph;
  graph.name = proto.name();
  proto.clear_name();
  read_inputs(*proto.mutable_input(), graph);
  proto.clear_input();
  read_constants(proto, graph, source);
  read_nodes(*proto.mutable_node(), graph, outer, source);
  proto.clear_node();
  read_outputs(proto, graph, outer);
  proto.clear_output();
  read_declarations(*proto.mutable_value_info(), graph);
  graph.foreign = proto.SerializeAsString();
  return graph;
}

}  // namespace quench::onnx
