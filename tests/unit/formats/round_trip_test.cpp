// SPDX-License-Identifier: Apache-2.0
// A model that is read and written again has the same content, byte for byte, whatever is in it.
#include <gtest/gtest.h>

#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;

/// A field that no version of the messages knows: number 1000, the text "kept".
const std::string kUnknown = "\xC2\x3E\x04kept";

void expect_unchanged(const ModelProto& proto) {
  EXPECT_EQ(round_trip(proto), proto.SerializeAsString());
}

AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name, int type) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

TEST(RoundTrip, SmallModel) { expect_unchanged(small_model()); }

TEST(RoundTrip, HeaderAndMetadata) {
  ModelProto proto = small_model();
  proto.set_ir_version(9999);
  proto.set_producer_name("someone");
  proto.set_producer_version("1.2");
  proto.set_domain("org.example");
  proto.set_model_version(7);
  proto.set_doc_string("what it does");
  auto& entry = *proto.add_metadata_props();
  entry.set_key("author");
  entry.set_value("me");
  auto& opset = *proto.add_opset_import();
  opset.set_domain("com.example");
  opset.set_version(3);
  expect_unchanged(proto);
  const Model model = load_proto(proto);
  EXPECT_EQ(model.ir_version, 9999);
  EXPECT_EQ(model.opset(), 17);
  EXPECT_EQ(model.opset("com.example"), 3);
  EXPECT_EQ(model.metadata.front(), std::pair(std::string("author"), std::string("me")));
}

TEST(RoundTrip, UnknownFieldsOfEveryMessage) {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  add_weight(graph, "w", {1, 2});
  add_attribute(*graph.mutable_node(0), "a", 2).set_i(5);
  *proto.mutable_unknown_fields() = kUnknown;
  *graph.mutable_unknown_fields() = kUnknown;
  *graph.mutable_node(0)->mutable_unknown_fields() = kUnknown;
  *graph.mutable_node(0)->mutable_attribute(0)->mutable_unknown_fields() = kUnknown;
  *graph.mutable_initializer(0)->mutable_unknown_fields() = kUnknown;
  *graph.mutable_input(0)->mutable_unknown_fields() = kUnknown;
  *graph.mutable_output(0)->mutable_unknown_fields() = kUnknown;
  graph.mutable_node(0)->set_doc_string("node doc");
  graph.mutable_node(0)->set_overload("fast");
  graph.mutable_initializer(0)->set_doc_string("weight doc");
  graph.mutable_input(0)->set_doc_string("input doc");
  graph.set_doc_string("graph doc");
  expect_unchanged(proto);
}

TEST(RoundTrip, AttributesOfEveryType) {
  ModelProto proto = small_model();
  auto& node = *proto.mutable_graph()->mutable_node(0);
  node.set_domain("com.example");
  node.set_op_type("NobodyKnowsThis");
  add_attribute(node, "f", 1).set_f(0.5F);
  add_attribute(node, "i", 2).set_i(-3);
  add_attribute(node, "s", 3).set_s(std::string("a\0b\xFF", 4));
  auto& tensor = *add_attribute(node, "t", 4).mutable_t();
  tensor.set_name("inner");
  tensor.set_data_type(7);
  tensor.add_int64_data(-1);
  tensor.add_dims(1);
  for (const float value : {1.5F, -2.5F}) {
    if (node.attribute_size() == 4) add_attribute(node, "floats", 6);
    node.mutable_attribute(4)->add_floats(value);
  }
  add_attribute(node, "ints", 7).add_ints(1L << 40);
  add_attribute(node, "strings", 8).add_strings("text");
  auto& listed = *add_attribute(node, "tensors", 9).add_tensors();
  listed.set_data_type(1);
  listed.set_raw_data(std::string(4, '\1'));
  *add_attribute(node, "type", 13).mutable_unknown_fields() = std::string("\x72\x02\x12\x00", 4);
  *add_attribute(node, "sparse", 11).mutable_unknown_fields() =
      std::string("\xB2\x01\x02\x18\x03", 5);
  add_attribute(node, "empty", 7);
  expect_unchanged(proto);
  const Model model = load_proto(proto);
  const Node& read = model.graph.nodes[0];
  EXPECT_EQ(read.get_int("i", 0), -3);
  EXPECT_EQ(read.get_string("s", ""), std::string("a\0b\xFF", 4));
  EXPECT_EQ(read.get<Tensor>("t")->data<std::int64_t>()[0], -1);
  EXPECT_EQ(read.get_ints("ints"), std::vector<std::int64_t>{1L << 40});
  EXPECT_NE(read.get<std::vector<std::int64_t>>("empty"), nullptr);
  EXPECT_NE(read.get<std::monostate>("type"), nullptr);
}

TEST(RoundTrip, AttributeWithoutTypeIsReadByItsField) {
  ModelProto proto = small_model();
  auto& attribute = *proto.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("axis");
  attribute.set_i(1);
  EXPECT_EQ(load_proto(proto).graph.nodes[0].get_int("axis", 0), 1);
}

/// If(cond) with branches that read `x` of the graph around them.
ModelProto model_with_branches() {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  graph.clear_node();
  *graph.add_input() = float_value("cond", {});
  auto& branch = add_node(graph, "If", {"cond"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    GraphProto& inner = *add_attribute(branch, name, 5).mutable_g();
    inner.set_name(name);
    add_weight(inner, "bias", {1, 2});
    add_node(inner, "Add", {"x", "bias"}, {"sum"});
    *inner.add_output() = float_value("sum", {2});
  }
  return proto;
}

TEST(RoundTrip, SubgraphsCaptureOuterValues) {
  const ModelProto proto = model_with_branches();
  expect_unchanged(proto);
  const Model model = load_proto(proto);
  const Graph& inner = **model.graph.nodes[0].get<GraphBox>("then_branch");
  const ValueId x = inner.nodes[0].inputs[0];
  EXPECT_TRUE(inner[x].captured);
  EXPECT_EQ(inner[x].name, "x");
  EXPECT_TRUE(inner[inner.nodes[0].inputs[1]].constant.has_value());
}

TEST(RoundTrip, NodesAreSortedWhereTheyAreNot) {
  ModelProto proto = small_model();
  proto.mutable_graph()->mutable_node(0)->set_input(0, "late");
  auto& attribute = *proto.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("body");
  attribute.set_type(5);
  add_node(*attribute.mutable_g(), "Neg", {"later"}, {"n"});
  add_node(*proto.mutable_graph(), "Neg", {"x"}, {"late"}).set_name("neg");
  add_node(*proto.mutable_graph(), "Abs", {"late"}, {"later"}).set_name("abs");
  const Folder folder;
  write_bytes(folder / "model.onnx", proto.SerializeAsString());
  const Model model = load(folder / "model.onnx");
  std::vector<std::string> names;
  for (const Node& node : model.graph.nodes) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"neg", "abs", "relu"}));
}

TEST(RoundTrip, OptionalInputsAndOutputsThatAreLeftOut) {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  graph.clear_node();
  add_node(graph, "Clip", {"x", "", ""}, {"y", ""});
  expect_unchanged(proto);
  const Node node = load_proto(proto).graph.nodes[0];
  EXPECT_EQ(node.inputs.size(), 3U);
  EXPECT_EQ(node.input(1), kNoValue);
  EXPECT_EQ(node.outputs[1], kNoValue);
}

TEST(RoundTrip, InitializerThatIsAlsoAnInput) {
  ModelProto proto = small_model();
  proto.set_ir_version(3);
  GraphProto& graph = *proto.mutable_graph();
  *graph.add_input() = float_value("w", {2});
  add_weight(graph, "w", {3, 4});
  expect_unchanged(proto);
  const Model model = load_proto(proto);
  EXPECT_EQ(model.graph.inputs.size(), 2U);
  EXPECT_EQ(model.graph.constant(model.graph.inputs[1])->data<float>()[1], 4.0F);
}

TEST(RoundTrip, DeclaredTypes) {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  graph.mutable_node(0)->set_output(0, "middle");
  add_node(graph, "Neg", {"middle"}, {"y"});
  auto& middle = *graph.add_value_info();
  middle = float_value("middle", {2});
  middle.mutable_type()->set_denotation("IMAGE");
  middle.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_denotation(
      "N");
  auto& symbolic = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  symbolic.mutable_dim(0)->clear_dim_value();
  symbolic.mutable_dim(0)->set_dim_param("batch");
  symbolic.add_dim();
  // A sequence of something: field 4 of TypeProto.
  auto& output = *graph.mutable_output(0)->mutable_type();
  output.Clear();
  *output.mutable_unknown_fields() = std::string("\x22\x02\x0A\x00", 4);
  expect_unchanged(proto);
  const Model model = load_proto(proto);
  const Value& x = model.graph[model.graph.inputs[0]];
  EXPECT_EQ(to_string(x.type), "float32[batch,?]");
  EXPECT_TRUE(model.graph[model.graph.find("middle")].declared);
  EXPECT_EQ(model.graph[model.graph.outputs[0]].type.kind, ValueType::Kind::Other);
}

TEST(RoundTrip, DeclarationOfAValueThatIsNotThere) {
  ModelProto proto = small_model();
  *proto.mutable_graph()->add_value_info() = float_value("long_gone", {1});
  expect_unchanged(proto);
}

TEST(RoundTrip, SparseInitializer) {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  auto& sparse = *graph.add_sparse_initializer();
  sparse.add_dims(2);
  sparse.mutable_values()->set_name("w");
  sparse.mutable_values()->set_data_type(1);
  sparse.mutable_values()->add_dims(1);
  sparse.mutable_values()->add_float_data(1);
  graph.mutable_node(0)->set_op_type("Add");
  graph.mutable_node(0)->add_input("w");
  expect_unchanged(proto);
}

TEST(RoundTrip, TensorOfATypeFromTheFuture) {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  add_weight(graph, "w", {1, 2}).set_data_type(77);
  graph.mutable_node(0)->set_op_type("Add");
  graph.mutable_node(0)->add_input("w");
  expect_unchanged(proto);
}

TEST(RoundTrip, Functions) {
  ModelProto proto = small_model();
  proto.mutable_graph()->mutable_node(0)->set_op_type("Twice");
  proto.mutable_graph()->mutable_node(0)->set_domain("local");
  auto& function = *proto.add_functions();
  function.set_name("Twice");
  function.set_domain("local");
  function.set_overload("v2");
  function.set_doc_string("adds a value to itself");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("alpha");
  auto& preset = *function.add_attribute_proto();
  preset.set_name("beta");
  preset.set_f(2);
  preset.set_type(1);
  auto& opset = *function.add_opset_import();
  opset.set_domain("");
  opset.set_version(17);
  auto& node = *function.add_node();
  node.add_input("a");
  node.add_output("b");
  node.set_op_type("LeakyRelu");
  auto& reference = add_attribute(node, "alpha", 1);
  reference.set_ref_attr_name("alpha");
  *function.add_value_info() = float_value("b", {2});
  *function.mutable_unknown_fields() = kUnknown;
  expect_unchanged(proto);
  const Model model = load_proto(proto);
  ASSERT_EQ(model.functions.size(), 1U);
  EXPECT_EQ(model.functions[0].body.nodes[0].attributes[0].reference, "alpha");
  EXPECT_EQ(model.functions[0].attribute_defaults[0].name, "beta");
}

TEST(RoundTrip, InputHandedThroughAsOutput) {
  ModelProto proto = small_model();
  *proto.mutable_graph()->add_output() = proto.graph().input(0);
  expect_unchanged(proto);
}

TEST(RoundTrip, OnnxDomainHasTwoNames) {
  ModelProto proto = small_model();
  proto.mutable_opset_import(0)->set_domain("ai.onnx");
  proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  const Model model = load_proto(proto);
  EXPECT_EQ(model.opset(), 17);
  EXPECT_EQ(model.graph.nodes[0].domain, "");
}

}  // namespace
}  // namespace quench::testing
