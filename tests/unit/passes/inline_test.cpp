// SPDX-License-Identifier: Apache-2.0
// Calls of functions that a model defines.
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

/// f(x, y) = (Elu(x; alpha = @a) + y, x).
Function two_outputs() {
  Function f;
  f.name = "f";
  f.domain = "my";
  f.opsets[""] = 17;
  Attribute standard;
  standard.name = "a";
  standard.data = 0.5F;
  f.attribute_defaults.push_back(standard);
  Graph& body = f.body;
  for (const char* name : {"x", "y"}) body.inputs.push_back(body.add_fresh(name));
  Node& elu = body.add_node("Elu", {body.find("x")}, {"t"});
  elu.name = "elu";
  elu.set("alpha", std::monostate{});
  elu.attributes[0].reference = "a";
  body.add_node("Add", {body.find("t"), body.find("y")}, {"sum"});
  body.outputs = {body.find("sum"), body.find("x")};
  return f;
}

Node& call(Builder& b, const std::vector<std::string>& in, const std::vector<std::string>& out) {
  Node& node = b.node("f", in, out);
  node.domain = "my";
  node.name = "call";
  return node;
}

TEST(InlineFunctions, ValuesAttributesAndNames) {
  Builder b;
  b.model.functions.push_back(two_outputs());
  b.input("x", dims({2})).input("t", dims({2}));
  call(b, {"x", "t"}, {"p", "q"}).set("a", 2.0F);
  call(b, {"p", "q"}, {"r"});
  b.output("r");
  EXPECT_EQ(b.run({"inline_functions"}).changes, 2U);
  EXPECT_EQ(b.text(), "Elu(x)->t_1 Add(t_1,t)->p Identity(x)->q Elu(p)->t_2 Add(t_2,q)->r");
  EXPECT_EQ(b.graph().nodes[0].get_float("alpha", 0), 2.0F);
  EXPECT_EQ(b.graph().nodes[0].name, "call/elu");
  EXPECT_EQ(b.graph().nodes[3].get_float("alpha", 0), 0.5F);  // the function's default
  EXPECT_TRUE(b.model.functions.empty());
}

TEST(InlineFunctions, MissingInputsAndAttributesAreLeftOut) {
  Builder b;
  Function f = two_outputs();
  f.attribute_defaults.clear();
  f.body.nodes[1].op_type = "Clip";
  b.model.functions.push_back(f);
  b.input("x", dims({2}));
  call(b, {"x"}, {"y"});
  b.output("y");
  b.run({"inline_functions"});
  EXPECT_EQ(b.text(), "Elu(x)->t Clip(t,_)->y");
  EXPECT_TRUE(b.graph().nodes[0].attributes.empty());
}

TEST(InlineFunctions, NestedCallsAndOpsets) {
  Builder b(13);
  Function g;
  g.name = "g";
  g.domain = "my";
  g.opsets = {{"", 17}, {"other", 3}};
  g.body.inputs.push_back(g.body.add_fresh("v"));
  g.body.add_node("f", {0, 0}, {"w"}).domain = "my";
  g.body.outputs = {g.body.find("w")};
  b.model.functions = {g, two_outputs()};
  b.input("x", dims({2}));
  b.node("g", {"x"}, {"y"}).domain = "my";
  b.output("y");
  const auto report = b.run({"inline_functions"});
  EXPECT_EQ(b.text(), "Elu(x)->t Add(t,x)->y");
  EXPECT_EQ(b.model.opset("other"), 3);
  ASSERT_EQ(report.notes.size(), 2U);
  EXPECT_NE(report.notes[0].find("opset 17"), std::string::npos);
}

TEST(InlineFunctions, BodiesInsideAFunctionReadTheCallersValues) {
  Builder b;
  Function f;
  f.name = "f";
  f.domain = "my";
  f.body.inputs.push_back(f.body.add_fresh("c"));
  f.body.inputs.push_back(f.body.add_fresh("v"));
  Node& node = f.body.add_node("If", {0}, {"o"});
  node.set("then_branch", capture("v", "x"));  // its local 'x' must not hide the caller's
  node.set("else_branch", capture("v", "z"));
  f.body.outputs = {f.body.find("o")};
  b.model.functions.push_back(f);
  b.input("cond", {}, DType::Bool).input("x", dims({2}));
  call(b, {"cond", "x"}, {"y"});
  b.output("y");
  b.run({"inline_functions"});
  EXPECT_EQ(b.text(), "If(cond)->y");
  EXPECT_EQ(Builder::text_of(**b.graph().nodes[0].get<GraphBox>("then_branch")), "Relu(x)->x_1");
  EXPECT_EQ(captured_names(b.graph().nodes[0]), (std::vector<std::string>{"x", "x"}));
}

std::string error_of(Builder& b) {
  try {
    b.run({"inline_functions"});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::BadModel);
    return error.what();
  }
  return "";
}

TEST(InlineFunctions, RecursionIsRefused) {
  Builder b;
  Function f = two_outputs();
  f.body.nodes[1].op_type = "f";
  f.body.nodes[1].domain = "my";
  b.model.functions.push_back(f);
  b.input("x", dims({2}));
  call(b, {"x", "x"}, {"y"});
  b.output("y");
  EXPECT_NE(error_of(b).find("calls itself"), std::string::npos);
}

TEST(InlineFunctions, ExponentialGrowthIsRefused) {
  Builder b;
  for (int i = 0; i < 40; ++i) {  // each calls the next twice
    Function f;
    f.name = "f" + std::to_string(i);
    f.domain = "my";
    f.body.inputs.push_back(f.body.add_fresh("v"));
    const std::string callee = i == 39 ? "Relu" : "f" + std::to_string(i + 1);
    f.body.add_node(callee, {0}, {"a"}).domain = i == 39 ? "" : "my";
    f.body.add_node(callee, {f.body.find("a")}, {"b"}).domain = i == 39 ? "" : "my";
    f.body.outputs = {f.body.find("b")};
    b.model.functions.push_back(f);
  }
  b.input("x", dims({2}));
  b.node("f0", {"x"}, {"y"}).domain = "my";
  b.output("y");
  EXPECT_NE(error_of(b).find("expand to more than"), std::string::npos);
}

TEST(InlineFunctions, TooManyArgumentsAreRefused) {
  Builder b;
  b.model.functions.push_back(two_outputs());
  b.input("x", dims({2}));
  call(b, {"x", "x", "x"}, {"y"});
  b.output("y");
  EXPECT_NE(error_of(b).find("takes 2 inputs"), std::string::npos);
}

}  // namespace
}  // namespace quench::testing
