// SPDX-License-Identifier: Apache-2.0
// Paddle programs become models with the names that their users know; bad ones are told apart.
#include <gtest/gtest.h>

#include "formats/foreign.h"
#include "formats/paddle/translate.h"
#include "quench/formats.h"
#include "unit/formats/paddle_builder.h"

namespace quench::testing {
namespace {

std::string error_at(const std::string& path) {
  try {
    (void)load(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_contains(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

/// What loading tells after a change to a program that is right.
template <typename Change>
std::string error_after(const Change& change) {
  const Folder folder;
  ProgramBuilder builder = small_program();
  change(builder);
  builder.write(folder / "m");
  return error_at(folder / "m.pdmodel");
}

TEST(PaddleRead, NamesAndOriginsAreKept) {
  const Folder folder;
  const ProgramBuilder builder = small_program();
  builder.write(folder / "m");
  const Model model = load(folder / "");
  const Graph& graph = model.graph;
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[0].op_type, "Add");
  EXPECT_EQ(graph.nodes[0].name, "elementwise_add/sum");
  EXPECT_EQ(graph[graph.nodes[0].inputs[1]].name, "conv.b_0");
  EXPECT_EQ(graph.constant(graph.nodes[0].inputs[1])->shape(), (Shape{3, 1, 1}));
  EXPECT_EQ(to_string(graph[graph.inputs[0]].type), "float32[batch,3,4,4]");
  EXPECT_EQ(graph[graph.outputs[0]].name, "y");
  const auto origin = paddle::origin_of(graph.nodes[1].foreign);
  ASSERT_TRUE(origin.has_value());
  EXPECT_EQ(origin->block, 0);
  EXPECT_EQ(builder.program.blocks(0).ops(origin->op).type(), "relu");
  EXPECT_EQ(foreign_of(model.foreign, paddle::kProgramForeign),
            builder.program.SerializeAsString());
}

TEST(PaddleRead, WhatIsWrittenTwiceIsTwoValues) {
  ProgramBuilder builder = small_program();
  auto& ops = *builder.program.mutable_blocks(0)->mutable_ops();
  for (auto& op : ops) {
    if (op.type() == "relu") op.mutable_outputs(0)->set_arguments(0, "sum");
    if (op.type() == "fetch") op.mutable_inputs(0)->set_arguments(0, "sum");
  }
  const Folder folder;
  builder.write(folder / "m");
  const Model model = load(folder / "m.pdmodel");
  EXPECT_EQ(model.graph[model.graph.outputs[0]].name, "sum@1");
  EXPECT_EQ(model.graph.nodes[1].op_type, "Relu");
}

TEST(PaddleRead, PortsAreOrderedByColumn) {
  ProgramBuilder builder;
  builder.input("b", {1});
  builder.input("a", {1});
  auto& ops = *builder.program.mutable_blocks(0)->mutable_ops();
  ops.SwapElements(0, 1);  // Paddle puts each new feed first
  builder.op("elementwise_sub", {{"X", {"b"}}, {"Y", {"a"}}}, {{"Out", {"y"}}});
  builder.output("y");
  const Folder folder;
  builder.write(folder / "m");
  const Graph graph = load(folder / "m.pdmodel").graph;
  EXPECT_EQ(graph[graph.inputs[0]].name, "b");
  EXPECT_EQ(graph[graph.inputs[1]].name, "a");
}

TEST(PaddleRead, ParametersAreFoundByEveryNaming) {
  const ProgramBuilder builder = small_program();
  const std::string program = builder.program.SerializeAsString();
  const Folder old;
  write_bytes(old / "__model__", program);
  write_bytes(old / "__params__", builder.records());
  EXPECT_EQ(load(old / "").graph.nodes.size(), 2U);
  const Folder separate;
  write_bytes(separate / "__model__", program);
  write_bytes(separate / "conv.b_0", builder.records());
  EXPECT_EQ(load(separate / "").graph.nodes.size(), 2U);
  const Folder named;
  write_bytes(named / "prog", program);
  write_bytes(named / "weights", builder.records());
  EXPECT_EQ(load(model_path(named / "", "prog", "weights")).graph.nodes.size(), 2U);
}

TEST(PaddleRead, BadFilesAreNamed) {
  const Folder folder;
  const ProgramBuilder builder = small_program();
  builder.write(folder / "m");
  write_bytes(folder / "alone.pdmodel", builder.program.SerializeAsString());
  expect_contains(error_at(folder / "alone.pdmodel"),
                  {"alone.pdmodel", "1 parameters", "--params-filename"});
  expect_contains(error_at(folder / ""), {"several models", "alone.pdmodel", "m.pdmodel"});
  const std::string bytes = builder.program.SerializeAsString();
  write_bytes(folder / "m.pdmodel", bytes.substr(0, bytes.size() / 2));
  expect_contains(error_at(folder / "m.pdmodel"), {"m.pdmodel", "cut off"});
  builder.write(folder / "m");
  write_bytes(folder / "m.pdiparams", builder.records() + "x");
  expect_contains(error_at(folder / "m.pdmodel"), {"m.pdiparams", "1 bytes more"});
  write_bytes(folder / "m.pdiparams", builder.records().substr(0, 30));
  expect_contains(error_at(folder / "m.pdmodel"), {"m.pdiparams", "conv.b_0", "cut off"});
}

TEST(PaddleRead, AllUnknownOperatorsAreListedFirst) {
  const std::string text = error_after([](ProgramBuilder& builder) {
    builder.op("warp_drive", {}, {});
    builder.op("warp_drive", {}, {});
    builder.op("flux_capacitor", {}, {});
    builder.parameters.clear();  // told only after the operators
  });
  expect_contains(text, {"flux_capacitor", "warp_drive (2 times)"});
}

/// A metric beside the network, as scripts of training leave it in.
TEST(PaddleRead, WhatNobodyFetchesIsLeftOut) {
  const auto measured = [](bool fetched) {
    return error_after([&](ProgramBuilder& builder) {
      builder.op("flux_capacitor", {{"X", {"y"}}}, {{"Out", {"flux"}}});
      builder.op("warp_drive", {{"X", {"flux"}}}, {{"Out", {"metric"}}});
      if (fetched) builder.output("metric");
    });
  };
  EXPECT_EQ(measured(false), "no error");
  expect_contains(measured(true), {"flux_capacitor", "warp_drive"});
}

TEST(PaddleRead, BadProgramsAreNamed) {
  expect_contains(error_after([](auto& b) { b.program.mutable_version()->set_version(4000000); }),
                  {"Paddle 4.0.0", "older"});
  expect_contains(error_after([](auto& b) { b.tensor("sum", DType::Float32, {1}); }),
                  {"two variables", "'sum'"});
  expect_contains(error_after([](auto& b) {
                    auto& attr = *b.program.mutable_blocks(0)->mutable_ops(1)->mutable_attrs(0);
                    attr.set_type(99);
                  }),
                  {"elementwise_add", "'axis'", "type that is not known"});
  expect_contains(error_after([](auto& b) {
                    b.program.mutable_blocks(0)->mutable_ops(2)->mutable_inputs(0)->set_arguments(
                        0, "nowhere");
                  }),
                  {"'relu'", "'nowhere'"});
  expect_contains(
      error_after([](auto& b) { b.program.mutable_blocks(0)->mutable_ops()->RemoveLast(); }),
      {"no fetch operator"});
}

TEST(PaddleRead, SizesThatDoNotFitAreOpened) {
  ProgramBuilder builder;
  builder.input("x", {-1, 1, 1, 8});
  builder.tensor("y", DType::Float32, {-1, 1, 0, 4});
  auto& pool = builder.op("pool2d", {{"X", {"x"}}}, {{"Out", {"y"}}});
  for (const char* name : {"ksize", "strides"}) {
    auto& attr = *pool.add_attrs();
    attr.set_name(name);
    attr.set_type(paddle::INTS);
    attr.add_ints(2);
    attr.add_ints(2);
  }
  auto& kind = *pool.add_attrs();
  kind.set_name("pooling_type");
  kind.set_type(paddle::STRING);
  kind.set_s("max");
  builder.output("y");
  const Folder folder;
  builder.write(folder / "m");
  const Graph graph = load(folder / "m.pdmodel").graph;
  EXPECT_EQ(to_string(graph[graph.inputs[0]].type), "float32[batch,1,x_2,x_3]");
}

}  // namespace
}  // namespace quench::testing
