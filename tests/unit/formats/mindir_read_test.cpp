// SPDX-License-Identifier: Apache-2.0
// MindIR and .ms files: what is wrong with one is told, and what was written is read again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/mindir/file.h"
#include "formats/mindir/mind_ir.pb.h"
#include "formats/ms/file.h"
#include "quench/formats.h"
#include "support/paths.h"
#include "unit/formats/onnx_builder.h"

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

Model read_mindir(const std::string& bytes) {
  return mindir::read_bytes(std::as_bytes(std::span(bytes)), "folder/model.mindir");
}

void expect_told(const mindir::wire::ModelData& file, const std::vector<std::string>& words) {
  const std::string message = complaint([&] { return read_mindir(file.SerializeAsString()); });
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

std::string seed(const char* format, const char* name) {
  std::ifstream file(source_dir() / "fuzz/seeds" / format / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// x through one operator, as older files have it: its name and attributes on the node.
mindir::wire::ModelData one_node(const std::string& op) {
  mindir::wire::ModelData file;
  file.set_ir_version("0.1.1");
  auto* graph = file.mutable_graph();
  graph->set_name("main");
  auto* input = graph->add_input();
  input->set_name("main:x");
  input->add_tensor()->set_data_type(1);
  input->mutable_tensor(0)->add_dims(2);
  auto* node = graph->add_node();
  node->add_input("main:x");
  node->add_output("main:y");
  node->set_op_type(op);
  graph->add_output()->set_name("main:y");
  return file;
}

TEST(MindirRead, OldFilesHaveTheOperatorOnTheNode) {
  const Model model = read_mindir(one_node("ReLU").SerializeAsString());
  EXPECT_EQ(model.graph.nodes.at(0).op_type, "Relu");
  EXPECT_EQ(model.graph[model.graph.inputs[0]].name, "x");
  EXPECT_EQ(model.graph[model.graph.outputs[0]].name, "y");
}

TEST(MindirRead, WhatIsNotKnownIsNamed) {
  expect_told(one_node("Mystery"), {"Mystery", "list operators --format mindir"});
  expect_told(one_node("QuantDTypeCast"), {"quantised by converter_lite", "float model"});
}

TEST(MindirRead, GraphsThatCallThemselvesAreTold) {
  mindir::wire::ModelData file = one_node("REF::loop");
  auto* loop = file.add_functions();
  *loop = file.graph();
  loop->set_name("loop");
  expect_told(file, {"node 'y'", "themselves"});
}

TEST(MindirRead, TuplesHaveALimitOfDepth) {
  mindir::wire::ModelData file = one_node("Constant");
  file.mutable_graph()->mutable_node(0)->clear_input();
  auto* at = file.mutable_graph()->mutable_node(0)->add_attribute();
  at->set_name("value");
  for (int i = 0; i < 40; ++i) {
    at->set_type(20);
    at = at->add_values();
  }
  expect_told(file, {"deep"});
}

TEST(MindirRead, ParametersMustFitAndLieBeside) {
  mindir::wire::ModelData file = one_node("ReLU");
  auto* parameter = file.mutable_graph()->add_parameter();
  parameter->set_name("main:w");
  parameter->set_data_type(1);
  parameter->add_dims(3);
  parameter->set_raw_data("1234");
  expect_told(file, {"parameter 'w'", "another model"});
  parameter->mutable_external_data()->set_location("../secret");
  expect_told(file, {"outside its folder"});
  parameter->mutable_external_data()->set_location("data_0");
  expect_told(file, {"parameter 'w'", "data_0"});
}

TEST(MindirRead, ParametersInAFileBesideAreRead) {
  const Folder folder;
  mindir::wire::ModelData file = one_node("Add");
  file.mutable_graph()->mutable_node(0)->add_input("main:w");
  auto* parameter = file.mutable_graph()->add_parameter();
  parameter->set_name("main:w");
  parameter->set_data_type(1);
  parameter->add_dims(2);
  parameter->mutable_external_data()->set_location("data_0");
  parameter->mutable_external_data()->set_offset(64);
  parameter->mutable_external_data()->set_length(8);
  const float numbers[] = {3, 4};
  std::string data(64, '\0');
  data.append(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  write_bytes(folder / "net.mindir", file.SerializeAsString());
  write_bytes(folder / "data_0", data);
  const Model model = load(folder / "net.mindir");
  EXPECT_EQ(model.graph.constant(model.graph.nodes.at(0).inputs.at(1))->data<float>()[1], 4);
  write_bytes(folder / "data_0", data.substr(0, 66));
  EXPECT_NE(complaint([&] { return load(folder / "net.mindir"); }).find("another model"),
            std::string::npos);
}

TEST(MindirRead, QuantisedParametersKeepTheirIntegers) {
  mindir::wire::ModelData file = one_node("Add");
  file.mutable_graph()->mutable_node(0)->add_input("main:w");
  auto* parameter = file.mutable_graph()->add_parameter();
  parameter->set_name("main:w");
  parameter->set_data_type(static_cast<int>(DType::Int8));
  parameter->add_dims(2);
  parameter->set_raw_data("\x05\x07");
  auto* scales = parameter->add_scales();
  scales->set_algorithm("linear_quant");
  auto* list = scales->add_attribute();
  list->set_name("scale_list");
  list->set_type(21);
  for (const double each : {0.5, 0.25}) {
    list->add_values()->set_type(11);
    list->mutable_values(list->values_size() - 1)->set_d(each);
  }
  const Model model = read_mindir(file.SerializeAsString());
  EXPECT_EQ(model.graph.nodes.at(0).op_type, "DequantizeLinear");
  EXPECT_EQ(model.graph.constant(model.graph.nodes[0].inputs[1])->data<float>()[1], 0.25F);
}

TEST(MindirRead, FilesThatWereCutShortAreTold) {
  const std::string bytes = seed("mindir", "conv_same2");
  ASSERT_FALSE(bytes.empty());
  for (const std::size_t size : {bytes.size() / 3, bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_NE(complaint([&] { return read_mindir(bytes.substr(0, size)); }), "") << size;
  }
}

TEST(MindirWrite, WhatWasReadIsWrittenAndReadAgain) {
  for (const char* name : {"conv_same2", "bn", "split2", "slice_", "avgpool", "up_bilinear"}) {
    const Model model = read_mindir(seed("mindir", name));
    Model again = read_mindir(mindir::write_bytes(model));
    Model third = read_mindir(mindir::write_bytes(again));
    ASSERT_EQ(model.graph.nodes.size(), again.graph.nodes.size()) << name;
    for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
      EXPECT_EQ(model.graph.nodes[i].op_type, again.graph.nodes[i].op_type) << name;
    }
    EXPECT_EQ(dump(again), dump(third)) << name;
  }
}

TEST(MindirWrite, WhatHasNoCounterpartIsListed) {
  Model model = read_mindir(one_node("ReLU").SerializeAsString());
  model.graph.nodes[0].op_type = "Det";
  const std::string message = complaint([&] { return mindir::write_bytes(model); });
  EXPECT_NE(message.find("Det (1)"), std::string::npos) << message;
}

TEST(MsRead, OperatorsTensorsAndScalesAreShown) {
  const auto bytes = std::make_shared<std::string>(seed("ms", "net"));
  const Model model = ms::read_bytes(std::as_bytes(std::span(*bytes)), bytes);
  EXPECT_EQ(model.graph.nodes.at(0).op_type, "Conv2DFusion");
  EXPECT_EQ(model.graph.nodes.at(1).op_type, "Softmax");
  EXPECT_NE(model.graph[model.graph.find("w")].foreign.find("2 scales from 0.25 to 0.5"),
            std::string::npos);
  EXPECT_EQ(model.graph[model.graph.find("w")].constant->dtype(), DType::Int8);
}

TEST(MsRead, DamagedFilesAreTold) {
  const std::string whole = seed("ms", "net");
  for (std::size_t size = 9; size < whole.size(); size += 7) {
    const auto part = std::make_shared<std::string>(whole.substr(0, size));
    EXPECT_NE(complaint([&] { return ms::read_bytes(std::as_bytes(std::span(*part)), part); }), "");
  }
}

TEST(MsRead, OtherCommandsSayWhatToDo) {
  const std::string path = (source_dir() / "fuzz/seeds/ms/net").string();
  EXPECT_NE(complaint([&] { return load(path); }).find("take the model that it was converted from"),
            std::string::npos);
  EXPECT_EQ(load_to_show(path).graph.nodes.size(), 2U);
}

}  // namespace
}  // namespace quench::testing
