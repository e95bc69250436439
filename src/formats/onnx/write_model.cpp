// SPDX-License-Identifier: Apache-2.0
// Fills the ONNX messages from a model, all but the bytes of its tensors.
#include <algorithm>

#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

using OpsetList = google::protobuf::RepeatedPtrField<OperatorSetIdProto>;

void write_opsets(const std::map<std::string, std::int64_t>& opsets, OpsetList& out) {
  for (const auto& [domain, version] : opsets) {
    OperatorSetIdProto& each = *out.Add();
    each.set_domain(domain);
    each.set_version(version);
  }
}

void write_constant(const Value& value, Store& store, GraphProto& proto) {
  if (value.constant) {
    TensorProto& tensor = *proto.add_initializer();
    parse_foreign(value.constant_foreign, tensor);
    tensor.set_name(value.name);
    store.write(*value.constant, value.form, tensor);
  } else if (!value.constant_foreign.empty()) {
    GraphProto holder;
    parse_foreign(value.constant_foreign, holder);
    proto.MergeFrom(holder);
  }
}

void write_declarations(const Graph& graph, GraphProto& proto) {
  std::vector<bool> done(graph.values().size(), false);
  for (const ValueId id : graph.inputs) done[static_cast<std::size_t>(id)] = true;
  for (const ValueId id : graph.outputs) done[static_cast<std::size_t>(id)] = true;
  for (std::size_t i = 0; i < done.size(); ++i) {
    const Value& value = graph.values()[i];
    if (value.declared && !done[i]) write_value_info(value, *proto.add_value_info());
  }
}

std::string name_of(const Graph& graph, ValueId id) {
  return id == kNoValue ? std::string() : graph[id].name;
}

void write_body(const Function& function, Store& store, FunctionProto& proto) {
  const Graph& body = function.body;
  for (const ValueId id : body.inputs) proto.add_input(name_of(body, id));
  for (const ValueId id : body.outputs) proto.add_output(name_of(body, id));
  for (const Node& node : body.nodes) write_node(body, node, store, *proto.add_node());
  for (const Value& value : body.values()) {
    if (value.declared) write_value_info(value, *proto.add_value_info());
  }
}

void write_function(const Function& function, Store& store, FunctionProto& proto) {
  parse_foreign(function.foreign, proto);
  proto.set_name(function.name);
  proto.set_domain(function.domain);
  if (!function.overload.empty()) proto.set_overload(function.overload);
  for (const std::string& each : function.attributes) proto.add_attribute(each);
  for (const Attribute& each : function.attribute_defaults) {
    write_attribute(each, store, *proto.add_attribute_proto());
  }
  write_opsets(function.opsets, *proto.mutable_opset_import());
  write_body(function, store, proto);
}

}  // namespace

void write_node(const Graph& graph, const Node& node, Store& store, NodeProto& proto) {
  parse_foreign(node.foreign, proto);
  for (const ValueId id : node.inputs) proto.add_input(name_of(graph, id));
  for (const ValueId id : node.outputs) proto.add_output(name_of(graph, id));
  if (!node.name.empty()) proto.set_name(node.name);
  proto.set_op_type(node.op_type);
  if (!node.domain.empty()) proto.set_domain(node.domain);
  for (const Attribute& each : node.attributes) {
    write_attribute(each, store, *proto.add_attribute());
  }
}

void write_graph(const Graph& graph, Store& store, GraphProto& proto) {
  parse_foreign(graph.foreign, proto);
  proto.set_name(graph.name);
  for (const ValueId id : graph.inputs) write_value_info(graph[id], *proto.add_input());
  for (const ValueId id : graph.outputs) write_value_info(graph[id], *proto.add_output());
  for (const Value& value : graph.values()) write_constant(value, store, proto);
  for (const Node& node : graph.nodes) write_node(graph, node, store, *proto.add_node());
  write_declarations(graph, proto);
}

void write_model(const Model& model, Store& store, ModelProto& proto) {
  parse_foreign(model.foreign, proto);
  proto.set_ir_version(model.ir_version);
  write_opsets(model.opsets, *proto.mutable_opset_import());
  if (!model.producer_name.empty()) proto.set_producer_name(model.producer_name);
  if (!model.producer_version.empty()) proto.set_producer_version(model.producer_version);
  if (!model.domain.empty()) proto.set_domain(model.domain);
  if (model.model_version != 0) proto.set_model_version(model.model_version);
  if (!model.doc.empty()) proto.set_doc_string(model.doc);
  for (const auto& [key, value] : model.metadata) {
    StringStringEntryProto& each = *proto.add_metadata_props();
    each.set_key(key);
    each.set_value(value);
  }
  write_graph(model.graph, store, *proto.mutable_graph());
  for (const Function& each : model.functions) {
    write_function(each, store, *proto.add_functions());
  }
}

}  // namespace quench::onnx
