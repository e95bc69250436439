// SPDX-License-Identifier: Apache-2.0
// Reads the outermost message: versions, metadata, the graph and the functions.
#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

using OpsetList = google::protobuf::RepeatedPtrField<OperatorSetIdProto>;

std::map<std::string, std::int64_t> read_opsets(const OpsetList& list) {
  std::map<std::string, std::int64_t> opsets;
  for (const OperatorSetIdProto& each : list) opsets[plain_domain(each.domain())] = each.version();
  return opsets;
}

Graph read_body(FunctionProto& proto, Source& source) {
  Graph body;
  for (const std::string& name : proto.input()) {
    Value value;
    value.name = name;
    body.inputs.push_back(body.add_value(std::move(value)));
  }
  read_nodes(*proto.mutable_node(), body, nullptr, source);
  for (const std::string& name : proto.output()) {
    const ValueId id = body.find(name);
    if (id == kNoValue) fail(ErrorKind::BadModel, "no node makes its output '{}'", name);
    body.outputs.push_back(id);
  }
  return body;
}

/// Types inside the body; those of values that are not there stay in the message.
void read_body_types(FunctionProto& proto, Graph& body) {
  google::protobuf::RepeatedPtrField<ValueInfoProto> rest;
  for (ValueInfoProto& each : *proto.mutable_value_info()) {
    const ValueId id = body.find(each.name());
    if (id == kNoValue || body[id].declared) {
      rest.Add()->Swap(&each);
      continue;
    }
    read_value_info(each, body[id]);
    body[id].declared = true;
  }
  proto.mutable_value_info()->Swap(&rest);
}

Function read_function(FunctionProto& proto, Source& source) {
  Function function;
  function.name = proto.name();
  function.domain = plain_domain(proto.domain());
  function.overload = proto.overload();
  function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
  function.opsets = read_opsets(proto.opset_import());
  const Graph nothing;
  const NodeList no_nodes;
  for (AttributeProto& each : *proto.mutable_attribute_proto()) {
    function.attribute_defaults.push_back(read_attribute(each, {&nothing, &no_nodes}, source));
  }
  function.body = read_body(proto, source);
  read_body_types(proto, function.body);
  proto.clear_name();
  proto.clear_domain();
  proto.clear_overload();
  proto.clear_attribute();
  proto.clear_attribute_proto();
  proto.clear_opset_import();
  proto.clear_input();
  proto.clear_output();
  proto.clear_node();
  function.foreign = proto.SerializeAsString();
  return function;
}

void read_functions(ModelProto& proto, Model& model, Source& source) {
  for (FunctionProto& each : *proto.mutable_functions()) {
    const std::string name = each.name();
    try {
      model.functions.push_back(read_function(each, source));
    } catch (Error& error) {
      throw error.in(format("function '{}'", name));
    }
  }
  proto.clear_functions();
}

void read_header(ModelProto& proto, Model& model) {
  model.ir_version = proto.ir_version();
  model.opsets = read_opsets(proto.opset_import());
  model.producer_name = proto.producer_name();
  model.producer_version = proto.producer_version();
  model.domain = proto.domain();
  model.model_version = proto.model_version();
  model.doc = proto.doc_string();
  for (const StringStringEntryProto& each : proto.metadata_props()) {
    model.metadata.emplace_back(each.key(), each.value());
  }
  proto.clear_ir_version();
  proto.clear_opset_import();
  proto.clear_producer_name();
  proto.clear_producer_version();
  proto.clear_domain();
  proto.clear_model_version();
  proto.clear_doc_string();
  proto.clear_metadata_props();
}

}  // namespace

Model read_model(ModelProto& proto, Source& source) {
  if (!proto.has_graph()) {
    fail(ErrorKind::BadModel, "the file holds no graph; it is not an ONNX model or is damaged");
  }
  Model model;
  read_header(proto, model);
  model.graph = read_graph(*proto.mutable_graph(), nullptr, source);
  proto.clear_graph();
  read_functions(proto, model, source);
  model.foreign = proto.SerializeAsString();
  return model;
}

}  // namespace quench::onnx
