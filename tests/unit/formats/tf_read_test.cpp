// SPDX-License-Identifier: Apache-2.0
// Frozen TensorFlow graphs are read, and what is wrong with one is told.
#include <gtest/gtest.h>

#include "formats/tensorflow/file.h"
#include "unit/formats/tf_builder.h"

namespace quench::testing {
namespace {

template <typename Read>
std::string complaint(const Read& read) {
  try {
    (void)read();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal);
    return error.what();
  }
  return "";
}

void expect_told(const TfBuilder& builder, const std::vector<std::string>& words) {
  const std::string message = complaint([&] { return builder.read(); });
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

TEST(TfRead, ConvolutionKeepsItsLayoutAtTheEdges) {
  const Model model = tf_conv().read();
  EXPECT_EQ(model.graph[model.graph.inputs.at(0)].name, "x");
  EXPECT_EQ(model.graph[model.graph.outputs.at(0)].name, "y");
  std::vector<std::string> types;
  for (const Node& node : model.graph.nodes) types.push_back(node.op_type);
  // The bias belongs to the convolution.
  EXPECT_EQ(types, (std::vector<std::string>{"Transpose", "Conv", "Relu", "Transpose"}));
}

TEST(TfRead, OperatorsThatAreNotKnownAreNamedTogether) {
  TfBuilder builder;
  builder.input("x", {1, 4});
  builder.node("a", "Mystery", {"x"});
  builder.node("b", "Riddle", {"a"});
  expect_told(builder, {"Mystery, Riddle", "list operators --format tf"});
}

TEST(TfRead, GraphsThatAreNotFrozenSayWhatToDo) {
  TfBuilder builder;
  builder.node("v", "VarHandleOp", {});
  builder.node("r", "ReadVariableOp", {"v"});
  expect_told(builder, {"not frozen", "convert_variables_to_constants_v2"});
}

TEST(TfRead, LoopsAndMissingNodesAreNamed) {
  TfBuilder loop;
  loop.node("a", "Relu", {"b"});
  loop.node("b", "Relu", {"a"});
  expect_told(loop, {"node 'a'", "its own result"});
  TfBuilder missing;
  missing.node("a", "Relu", {"nobody"});
  expect_told(missing, {"'a' reads 'nobody'"});
}

TEST(TfRead, ErrorsNameTheNode) {
  TfBuilder builder;
  builder.input("x", {1, 4, 4, 2});
  builder.constant("w", Tensor::zeros(DType::Float32, {3, 3, 2}));
  builder.node("conv", "Conv2D", {"x", "w"});
  builder.ints("conv", "strides", {1, 1, 1, 1});
  builder.text("conv", "padding", "SAME");
  expect_told(builder, {"node 'conv' (Conv2D)", "3x3x2"});
}

TEST(TfRead, ATransposeMustNameEachDimension) {
  TfBuilder builder;
  builder.input("x", {2, 3});
  builder.constant("perm", Tensor::of<std::int32_t>({2}, {5, 0}));
  builder.node("y", "Transpose", {"x", "perm"});
  expect_told(builder, {"node 'y'", "each of 2 dimensions"});
}

TEST(TfRead, FilesThatWereCutShortAreTold) {
  const std::string bytes = tf_conv().bytes();
  for (const std::size_t size : {std::size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
    const std::string part = bytes.substr(0, size);
    EXPECT_NE(complaint([&] { return tensorflow::read_bytes(std::as_bytes(std::span(part))); }),
              "");
  }
}

TEST(TfRead, FakeQuantisationBecomesIntegers) {
  TfBuilder builder;
  builder.input("x", {1, 4});
  builder.constant("min", Tensor::scalar(-1.0F));
  builder.constant("max", Tensor::scalar(1.0F));
  builder.node("q", "FakeQuantWithMinMaxVars", {"x", "min", "max"});
  builder.node("y", "Relu", {"q"});
  const Model model = builder.read();
  EXPECT_EQ(model.graph.nodes.at(0).op_type, "QuantizeLinear");
  EXPECT_EQ(model.graph.nodes.at(1).op_type, "DequantizeLinear");
  EXPECT_FLOAT_EQ(model.graph.constant(model.graph.nodes[0].inputs[1])->data<float>()[0],
                  2.0F / 255);
}

}  // namespace
}  // namespace quench::testing
