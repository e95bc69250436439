// SPDX-License-Identifier: Apache-2.0
// Conditions and loops written as Paddle: blocks that nobody touched are the same bytes, and what
// our own rows write computes the same.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "formats/paddle/framework.pb.h"
#include "quench/session.h"
#include "support/paths.h"
#include "unit/formats/onnx_builder.h"
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

const char* const kCases = "tests/unit/formats/paddle_cases";

paddle::ProgramDesc program_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  paddle::ProgramDesc program;
  EXPECT_TRUE(program.ParseFromIstream(&file)) << path;
  return program;
}

/// Of all blocks; feed operators may stand in another order.
std::multiset<std::string> operators_of(const paddle::ProgramDesc& program) {
  std::multiset<std::string> operators;
  for (const auto& block : program.blocks()) {
    for (const auto& op : block.ops()) operators.insert(op.SerializeAsString());
  }
  return operators;
}

Tensor three(float a, float b, float c) {
  return Tensor::of<float>({3}, std::initializer_list<float>{a, b, c});
}

/// The sums of the first two decide which branches are taken.
const std::vector<TensorMap>& control_feeds() {
  static const std::vector<TensorMap> kFeeds = {
      {{"in0_0", three(1, 2, 3)}, {"in1_0", three(-1, 0, -3)}, {"in2_0", three(1, -2, 4)}},
      {{"in0_0", three(-1, 0, -3)}, {"in1_0", three(1, 2, 3)}, {"in2_0", three(0, 5, 1)}}};
  return kFeeds;
}

void expect_same(const Model& model, const std::string& path, const std::vector<TensorMap>& feeds) {
  Session before(model);
  Session after(load(path));
  for (const TensorMap& feed : feeds) {
    const TensorMap wanted = before.run(feed);
    const TensorMap found = after.run(feed);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [name, tensor] : wanted) {
      EXPECT_EQ(to_float(found.at(name)), to_float(tensor)) << name;
    }
  }
}

TEST(PaddleControl, BlocksThatNobodyTouchedAreTheSameBytes) {
  const std::string path = (source_dir() / kCases / "control.pdmodel").string();
  const Model model = load(path);
  const Folder folder;
  save(model, folder / "m.pdmodel");
  EXPECT_TRUE(operators_of(program_at(folder / "m.pdmodel")) == operators_of(program_at(path)));
  expect_same(model, folder / "m.pdmodel", control_feeds());
}

TEST(PaddleControl, ATouchedProgramKeepsItsBlocks) {
  const std::string path = (source_dir() / kCases / "control.pdmodel").string();
  Model model = load(path);
  // Another node in front of the last output.
  Graph& graph = model.graph;
  const ValueId more = graph.add_node("Relu", {graph.outputs.back()}, {"more"}).outputs[0];
  graph.outputs.back() = more;
  infer_types(model);
  const Folder folder;
  save(model, folder / "m.pdmodel");
  const auto before = program_at(path);
  const auto after = program_at(folder / "m.pdmodel");
  ASSERT_EQ(after.blocks_size(), before.blocks_size());
  for (int i = 1; i < before.blocks_size(); ++i) {
    EXPECT_EQ(after.blocks(i).SerializeAsString(), before.blocks(i).SerializeAsString()) << i;
  }
  expect_same(model, folder / "m.pdmodel", control_feeds());
}

TEST(PaddleControl, RegionsOfPirAreWrittenBack) {
  const Model model = load((source_dir() / kCases / "pir/control.json").string());
  const Folder folder;
  save(model, folder / "m.json");
  expect_same(model, folder / "m.json", control_feeds());
  save(model, folder / "m.pdmodel");
  expect_same(model, folder / "m.pdmodel", control_feeds());
}

ValueId capture(Builder& inner, const std::string& name) {
  Value value;
  value.name = name;
  value.captured = true;
  return inner.graph().add_value(std::move(value));
}

/// y = sum(x) > 0 ? x + w : 5.
Model condition() {
  Builder then;
  capture(then, "x");
  capture(then, "w");
  then.node("Add", {"x", "w"}, {"sum"});
  then.output("sum");
  Builder otherwise;
  otherwise.node("Constant", {}, {"five"}).set("value", three(5, 5, 5));
  otherwise.output("five");
  Builder b;
  b.input("x", {{.value = 3}});
  b.constant("w", three(1, 2, 3));
  b.number("zero", 0);
  b.node("ReduceSum", {"x"}, {"total"}).set("keepdims", std::int64_t{0});
  b.node("Greater", {"total", "zero"}, {"positive"});
  Node& node = b.node("If", {"positive"}, {"y"});
  node.set("then_branch", GraphBox(std::move(then.graph())));
  node.set("else_branch", GraphBox(std::move(otherwise.graph())));
  b.output("y");
  infer_types(b.model);
  return b.model;
}

/// Four turns at most of (a, b) = (b, a + i), while the largest of a is below ten.
Model loop(bool stacks = false) {
  Builder body;
  body.input("i", {}, DType::Int64).input("before", {}, DType::Bool);
  body.input("a", {{.value = 3}}).input("b", {{.value = 3}});
  body.node("Cast", {"i"}, {"turn"}).set("to", static_cast<std::int64_t>(DType::Float32));
  body.node("Add", {"a", "turn"}, {"grown"});
  capture(body, "ten");
  body.node("ReduceMax", {"a"}, {"top"}).set("keepdims", std::int64_t{0});
  body.node("Less", {"top", "ten"}, {"small"});
  body.node("Identity", {"b"}, {"was_b"});
  body.output("small").output("was_b").output("grown");
  if (stacks) body.node("Identity", {"a"}, {"each"});
  if (stacks) body.output("each");
  Builder b;
  b.input("x", {{.value = 3}});
  b.constant("start", three(1, 2, 3));
  b.number("ten", 10);
  b.constant("most", Tensor::scalar(std::int64_t{4}));
  std::vector<std::string> made = {"y", "z"};
  if (stacks) made.push_back("all");
  Node& node = b.node("Loop", {"most", "", "x", "start"}, made);
  node.set("body", GraphBox(std::move(body.graph())));
  for (const std::string& name : made) b.output(name);
  infer_types(b.model);
  return b.model;
}

TEST(PaddleControl, AConditionOfOnnxBecomesBlocksOrRegions) {
  const Model model = condition();
  const Folder folder;
  for (const char* file : {"m.pdmodel", "m.json"}) {
    save(model, folder / file);
    expect_same(model, folder / file, {{{"x", three(1, 2, 3)}}, {{"x", three(-1, -2, 0)}}});
  }
  EXPECT_EQ(program_at(folder / "m.pdmodel").blocks_size(), 3);
}

TEST(PaddleControl, ALoopOfOnnxBecomesABlockOrARegion) {
  const Model model = loop();
  const Folder folder;
  for (const char* file : {"m.pdmodel", "m.json"}) {
    save(model, folder / file);
    expect_same(model, folder / file, {{{"x", three(1, 2, 3)}}, {{"x", three(1, 20, 0)}}});
  }
  EXPECT_EQ(program_at(folder / "m.pdmodel").blocks_size(), 2);
}

/// Two turns of a loop whose body decides: a = sum(a) > 0 ? a + w : w, where w lies outside of
/// both.
Model condition_in_loop() {
  Builder then;
  capture(then, "a");
  capture(then, "w");
  then.node("Add", {"a", "w"}, {"sum"});
  then.output("sum");
  Builder otherwise;
  capture(otherwise, "w");
  otherwise.node("Identity", {"w"}, {"w_alone"});
  otherwise.output("w_alone");
  Builder body;
  body.input("i", {}, DType::Int64).input("before", {}, DType::Bool).input("a", {{.value = 3}});
  body.number("zero", 0);
  body.node("ReduceSum", {"a"}, {"total"}).set("keepdims", std::int64_t{0});
  body.node("Greater", {"total", "zero"}, {"positive"});
  Node& inner = body.node("If", {"positive"}, {"next"});
  inner.set("then_branch", GraphBox(std::move(then.graph())));
  inner.set("else_branch", GraphBox(std::move(otherwise.graph())));
  body.node("Identity", {"before"}, {"on"});
  body.output("on").output("next");
  Builder b;
  b.input("x", {{.value = 3}});
  b.constant("w", three(1, 2, -9));
  b.constant("most", Tensor::scalar(std::int64_t{2}));
  b.node("Loop", {"most", "", "x"}, {"y"}).set("body", GraphBox(std::move(body.graph())));
  b.output("y");
  infer_types(b.model);
  return b.model;
}

TEST(PaddleControl, AConditionInsideALoopReadsWhatLiesAroundBoth) {
  const Model model = condition_in_loop();
  const Folder folder;
  for (const char* file : {"m.pdmodel", "m.json"}) {
    save(model, folder / file);
    expect_same(model, folder / file, {{{"x", three(1, 2, 3)}}, {{"x", three(-1, -2, 0)}}});
  }
}

TEST(PaddleControl, BlocksBecomeRegions) {
  const Model model = load((source_dir() / kCases / "control.pdmodel").string());
  const Folder folder;
  save(model, folder / "m.json");
  expect_same(model, folder / "m.json", control_feeds());
  // And once more, from regions that were ours.
  save(load(folder / "m.json"), folder / "again.json");
  expect_same(model, folder / "again.json", control_feeds());
}

/// Two nodes dequantise the same integers, which becomes one where nobody but nodes reads them.
TEST(PaddleControl, ABranchReadsWhatIsDequantisedForItAlone) {
  Builder then;
  capture(then, "second");
  then.node("Neg", {"second"}, {"less"});
  then.output("less");
  Builder otherwise;
  capture(otherwise, "second");
  otherwise.node("Abs", {"second"}, {"more"});
  otherwise.output("more");
  Builder b;
  b.input("x", {{.value = 3}});
  b.number("scale", 0.5F).number("zero", 0);
  b.constant("zero_point", Tensor::scalar(std::int8_t{0}));
  b.node("QuantizeLinear", {"x", "scale", "zero_point"}, {"integers"});
  b.node("DequantizeLinear", {"integers", "scale", "zero_point"}, {"first"});
  b.node("DequantizeLinear", {"integers", "scale", "zero_point"}, {"second"});
  b.node("ReduceSum", {"first"}, {"total"}).set("keepdims", std::int64_t{0});
  b.node("Greater", {"total", "zero"}, {"positive"});
  Node& node = b.node("If", {"positive"}, {"y"});
  node.set("then_branch", GraphBox(std::move(then.graph())));
  node.set("else_branch", GraphBox(std::move(otherwise.graph())));
  b.output("y");
  infer_types(b.model);
  const Folder folder;
  save(b.model, folder / "m.pdmodel");
  expect_same(b.model, folder / "m.pdmodel",
              {{{"x", three(1, 2.2F, 3)}}, {{"x", three(-1, 0, 0)}}});
}

TEST(PaddleControl, WhatTurnsStackIsRefused) {
  const Folder folder;
  try {
    save(loop(true), folder / "m.pdmodel");
    FAIL() << "it was written";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("it stacks what its turns make"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace quench::testing
