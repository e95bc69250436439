// SPDX-License-Identifier: Apache-2.0
// Inference over whole models: shape arithmetic, bodies, functions, contradictions, hostile input.
#include <gtest/gtest.h>

#include <chrono>

#include "base/format.h"
#include "infer_support.h"

namespace quench::testing {
namespace {

/// A model under construction in which every node has one output.
struct Builder {
  Model model;

  Builder() { model.opsets = {{"", 17}}; }

  ValueId input(const std::string& name, std::string_view type) {
    return add_input(model.graph, name, type);
  }
  ValueId constant(Tensor tensor) { return model.graph.add_constant("c", std::move(tensor)); }
  ValueId add(const std::string& op, std::vector<ValueId> inputs, const std::string& name,
              std::vector<std::pair<std::string, Attribute::Data>> attributes = {}) {
    Node& node = model.graph.add_node(op, std::move(inputs), {name});
    node.name = name;
    for (auto& [key, data] : attributes) node.set(key, std::move(data));
    return node.outputs[0];
  }
  std::string type(std::string_view name) const { return type_of(model, name); }
};

std::string message_of(Model model) {
  try {
    infer_types(model);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::BadModel) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(InferModel, KeepsTheBatchThroughShapeArithmetic) {
  Builder b;
  const ValueId x = b.input("x", "float32[N,3,H,W]");
  const ValueId shape = b.add("Shape", {x}, "shape");
  const ValueId batch =
      b.add("Gather", {shape, b.constant(Tensor::scalar<std::int64_t>(0))}, "batch");
  const ValueId one = b.add("Unsqueeze", {batch, b.constant(ints({0}))}, "one");
  const ValueId wanted =
      b.add("Concat", {one, b.constant(ints({-1}))}, "wanted", {{"axis", std::int64_t{0}}});
  b.add("Reshape", {x, wanted}, "flat");
  infer_types(b.model);
  EXPECT_EQ(b.type("flat"), "float32[N,3*H*W]");
}

TEST(InferModel, SplitsHeadsAndJoinsThemAgain) {
  Builder b;
  const ValueId x = b.input("x", "float32[B,S,64]");
  const ValueId split = b.add("Reshape", {x, b.constant(ints({0, -1, 4, 16}))}, "split");
  const ValueId turned = b.add("Transpose", {split}, "turned", {{"perm", list({0, 2, 1, 3})}});
  const ValueId back = b.add("Transpose", {turned}, "back", {{"perm", list({0, 2, 1, 3})}});
  b.add("Reshape", {back, b.constant(ints({0, -1, 64}))}, "joined");
  infer_types(b.model);
  EXPECT_EQ(b.type("turned"), "float32[B,4,S,16]");
  EXPECT_EQ(b.type("joined"), "float32[B,S,64]");
}

TEST(InferModel, FollowsTheArithmeticOfSizes) {
  Builder b;
  const ValueId x = b.input("x", "float32[N,3,H,32]");
  const ValueId shape = b.add("Shape", {x}, "shape");
  const ValueId size =
      b.add("Slice", {shape, b.constant(ints({2})), b.constant(ints({4}))}, "size");
  const ValueId twice = b.add("Mul", {size, b.constant(ints({2}))}, "twice");
  const ValueId less = b.add("Sub", {twice, b.constant(ints({4}))}, "less");
  const ValueId half = b.add("Div", {less, b.constant(ints({2}))}, "half");
  const ValueId cast = b.add("Cast", {half}, "cast", {{"to", std::int64_t{7}}});
  b.add("ConstantOfShape", {cast}, "made");
  infer_types(b.model);
  EXPECT_EQ(b.type("made"), "float32[H-2,30]");
}

TEST(InferModel, SeesThroughTheExpandOfExporters) {
  Builder b;
  const ValueId x = b.input("x", "float32[N,8]");
  const ValueId shape = b.add("Shape", {x}, "shape");
  const ValueId wanted =
      b.add("Concat", {shape, b.constant(ints({-1}))}, "wanted", {{"axis", std::int64_t{0}}});
  const ValueId is_open = b.add("Equal", {wanted, b.constant(ints({-1}))}, "is_open");
  const ValueId full = b.add("Where", {is_open, b.constant(ints({1})), wanted}, "full");
  b.add("Expand", {b.input("y", "float32[1,1,5]"), full}, "out");
  infer_types(b.model);
  EXPECT_EQ(b.type("out"), "float32[N,8,5]");
}

TEST(InferModel, KeepsTheMoreSpecificOfDeclaredAndInferred) {
  Builder b;
  const ValueId x = b.input("x", "float32[N,4]");
  const ValueId y = b.add("Relu", {x}, "y");
  const ValueId z = b.add("Invented", {y}, "z");
  b.add("Relu", {z}, "out");
  b.model.graph[y].type = parse_type("float32[?,M]");
  b.model.graph[y].declared = true;
  b.model.graph[z].type = parse_type("float32[N,7]");
  b.model.graph[z].declared = true;
  infer_types(b.model);
  EXPECT_EQ(b.type("y"), "float32[N,4]");
  EXPECT_EQ(b.type("out"), "float32[N,7]");
}

TEST(InferModel, OutputsKeepTheSymbolsTheFileGivesThem) {
  Builder b;
  const ValueId y = b.add("Relu", {b.input("x", "float32[N,4]")}, "y");
  b.model.graph[y].type = parse_type("float32[batch,C]");
  b.model.graph.outputs = {y};
  infer_types(b.model);
  EXPECT_EQ(b.type("y"), "float32[batch,4]");
}

TEST(InferModel, ForgetsWhatWasInferredBeforeAChange) {
  Builder b;
  const ValueId x = b.input("x", "float32[1,4]");
  b.add("Relu", {x}, "y");
  b.add("Relu", {b.model.graph.find("y")}, "z");
  infer_types(b.model);
  EXPECT_EQ(b.type("z"), "float32[1,4]");
  b.model.graph[x].type = parse_type("float32[N,4]");
  infer_types(b.model);
  EXPECT_EQ(b.type("z"), "float32[N,4]");
}

TEST(InferModel, ADeclaredShapeThatIsWrongIsReplacedAndToldOf) {
  for (const char* declared : {"float32[N,5]", "float32[N]", "float32[1,N,4]"}) {
    for (const bool output : {true, false}) {
      Builder b;
      const ValueId y = b.add("Relu", {b.input("x", "float32[N,4]")}, "y");
      b.add("Neg", {y}, "z");
      b.model.graph[y].type = parse_type(declared);
      b.model.graph[y].declared = true;
      b.model.graph.outputs = {b.model.graph.find(output ? "y" : "z")};
      const std::vector<std::string> notes = infer_types(b.model);
      ASSERT_EQ(notes.size(), 1U);
      EXPECT_EQ(notes[0],
                format("the file declares value 'y' as {}, but it is float32[N,4]", declared));
      EXPECT_EQ(b.type("y"), "float32[N,4]");
      EXPECT_EQ(b.type("z"), "float32[N,4]");
      EXPECT_TRUE(infer_types(b.model).empty()) << "told of twice";
    }
  }
}

TEST(InferModel, AnotherElementTypeNamesNodeAndBothTypes) {
  Builder b;
  const ValueId y = b.add("Relu", {b.input("x", "float32[N,4]")}, "y");
  b.model.graph[y].type = parse_type("int64[N,4]");
  b.model.graph.outputs = {y};
  const std::string message = message_of(b.model);
  EXPECT_NE(message.find("'y'"), std::string::npos) << message;
  EXPECT_NE(message.find("int64[N,4]"), std::string::npos) << message;
  EXPECT_NE(message.find("float32[N,4]"), std::string::npos) << message;
}

/// A loop that adds its count to what it carries; the body declares the count as `count`.
Builder counting_loop(const char* count) {
  Builder b;
  Graph body;
  for (const auto& [name, type] :
       {std::pair("i", count), std::pair("go", "bool[]"), std::pair("sum", "int64[2]")}) {
    body.inputs.push_back(body.add_value({.name = name, .type = parse_type(type)}));
  }
  body.add_node("Identity", {body.inputs[1]}, {"go_on"});
  body.add_node("Add", {body.inputs[2], body.inputs[0]}, {"next"});
  body.add_node("Identity", {body.inputs[0]}, {"seen"});
  body.outputs = {body.find("go_on"), body.find("next"), body.find("seen")};
  const ValueId trips = b.constant(Tensor::of<std::int64_t>({}, {3}));
  const ValueId start = b.input("start", "int64[2]");
  Node& loop = b.model.graph.add_node("Loop", {trips, kNoValue, start}, {"total", "counts"});
  loop.set("body", GraphBox(std::move(body)));
  return b;
}

TEST(InferModel, ALoopCountsAsItsBodyDeclares) {
  Builder scalar = counting_loop("int64[]");
  EXPECT_TRUE(infer_types(scalar.model).empty());
  EXPECT_EQ(scalar.type("counts"), "int64[?]");
  Builder vector = counting_loop("int64[1]");
  EXPECT_TRUE(infer_types(vector.model).empty());
  EXPECT_EQ(vector.type("counts"), "int64[?,1]");
}

TEST(InferModel, RejectsNodesThatMakeNoSense) {
  using L = std::vector<std::pair<std::string, Attribute::Data>>;
  const std::int64_t huge = INT64_MAX;
  const std::vector<OpCase> cases{
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3]"}, {}, {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,2,3,3]"}, {}, {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3,3]"}, L{{"group", std::int64_t{2}}}, {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3,3]"}, L{{"group", std::int64_t{0}}}, {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3,3]"}, L{{"strides", list({0, 1})}}, {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3,3]"}, L{{"pads", list({-1, 0, 0, 0})}}, {"?"}},
      {"Conv",
       {"float32[1,3,8,8]", "float32[4,3,3,3]"},
       L{{"pads", list({huge, huge, huge, huge})}},
       {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3,3]"}, L{{"dilations", list({huge, 1})}}, {"?"}},
      {"Conv", {"float32[1,3,2,2]", "float32[4,3,3,3]"}, {}, {"?"}},
      {"Conv", {"float32[1,3,8,8]", "float32[4,3,3,3]"}, L{{"kernel_shape", list({5, 5})}}, {"?"}},
      {"MaxPool", {"float32[1,3,8,8]"}, L{{"kernel_shape", list({2})}}, {"?"}},
      {"MaxPool", {"float32[1,3,8,8]"}, L{{"kernel_shape", list({-2, 2})}}, {"?"}},
      {"Add", {"float32[3]", "float32[4]"}, {}, {"?"}},
      {"Add", {"float32[3]", "int64[3]"}, {}, {"?"}},
      {"Add", {"float32[3]"}, {}, {"?"}},
      {"MatMul", {"float32[2,3]", "float32[4,5]"}, {}, {"?"}},
      {"MatMul", {"float32[]", "float32[4,5]"}, {}, {"?"}},
      {"Gemm", {"float32[2,3]", "float32[3,5,1]"}, {}, {"?"}},
      {"Softmax", {"float32[2,3]"}, L{{"axis", std::int64_t{2}}}, {"?"}},
      {"Softmax", {"float32[2,3]"}, L{{"axis", INT64_MIN}}, {"?"}},
      {"Concat", {"float32[2,3]", "float32[3,3]"}, L{{"axis", std::int64_t{1}}}, {"?"}},
      {"Reshape", {"float32[2,3]", ints({4, 2})}, {}, {"?"}},
      {"Reshape", {"float32[2,3]", ints({4, -1})}, {}, {"?"}},
      {"Reshape", {"float32[2,3]", ints({-1, -1})}, {}, {"?"}},
      {"Reshape", {"float32[2,3]", ints({-5})}, {}, {"?"}},
      {"Transpose", {"float32[2,3]"}, L{{"perm", list({0, 0})}}, {"?"}},
      {"Transpose", {"float32[2,3]"}, L{{"perm", list({0})}}, {"?"}},
      {"Squeeze", {"float32[2,3]", ints({0})}, {}, {"?"}},
      {"Split", {"float32[6]", ints({5, 2})}, {}, {"?", "?"}},
      {"Slice", {"float32[6]", ints({0}), ints({1}), ints({0}), ints({0})}, {}, {"?"}},
      {"Slice", {"float32[6]", ints({0, 0}), ints({1})}, {}, {"?"}},
      {"TopK", {"float32[6]", ints({7})}, {}, {"?", "?"}},
      {"Tile", {"float32[6]", ints({1, 1})}, {}, {"?"}},
      {"BatchNormalization",
       {"float32[N,3]", "float32[4]", "float32[3]", "float32[3]", "float32[3]"},
       {},
       {"?"}},
      {"QuantizeLinear", {"float32[N,3]", "float32[4]", "int8[4]"}, {}, {"?"}},
      {"Einsum", {"float32[2,3]"}, L{{"equation", std::string("abc->a")}}, {"?"}},
      {"ConstantOfShape", {ints({2, -3})}, {}, {"?"}},
  };
  for (const OpCase& each : cases) {
    const std::string message = message_of(make_model(each));
    EXPECT_NE(message.find("'tested'"), std::string::npos) << each.op << ": " << message;
  }
}

TEST(InferModel, HostileSizesNeitherOverflowNorThrow) {
  const std::int64_t huge = INT64_MAX;
  const std::vector<OpCase> cases{
      {"Flatten",
       {"float32[9223372036854775807,9223372036854775807,2]"},
       {{"axis", std::int64_t{2}}},
       {"float32[?,2]"}},
      {"Tile", {"float32[9223372036854775807]", ints({huge})}, {}, {"float32[?]"}},
      {"Concat",
       {"float32[9223372036854775807]", "float32[9223372036854775807]"},
       {{"axis", std::int64_t{0}}},
       {"float32[?]"}},
      {"Pad", {"float32[9223372036854775807]", ints({huge, huge})}, {}, {"float32[?]"}},
      {"Slice",
       {"float32[9223372036854775807]", ints({INT64_MIN}), ints({huge}), ints({0}), ints({huge})},
       {},
       {"float32[1]"}},
      {"Resize", {"float32[9223372036854775807]", {}, floats({1e30F})}, {}, {"float32[?]"}},
      {"ConvTranspose",
       {"float32[1,1,9223372036854775807]", "float32[1,1,3]"},
       {{"strides", list({8})}},
       {"float32[1,1,?]"}},
      {"Range",
       {Tensor::scalar<std::int64_t>(INT64_MIN), Tensor::scalar<std::int64_t>(huge),
        Tensor::scalar<std::int64_t>(1)},
       {},
       {"int64[?]"}},
  };
  for (const OpCase& each : cases) {
    Model model = make_model(each);
    ASSERT_NO_THROW(infer_types(model)) << each.op;
    EXPECT_EQ(type_of(model, "out0"), each.outputs[0]) << each.op;
  }
}

Graph branch(const std::string& op, const std::string& captured) {
  Graph graph;
  const ValueId x = graph.add_value(named_value(captured));
  graph[x].captured = true;
  graph.outputs = graph.add_node(op, {x}, {op + "_out"}).outputs;
  return graph;
}

TEST(InferModel, IfJoinsWhatItsBranchesSay) {
  Builder b;
  b.input("x", "float32[N,4]");
  const ValueId condition = b.input("condition", "bool[]");
  b.add("If", {condition}, "same",
        {{"then_branch", GraphBox(branch("Relu", "x"))},
         {"else_branch", GraphBox(branch("Sigmoid", "x"))}});
  b.add("If", {condition}, "other",
        {{"then_branch", GraphBox(branch("Relu", "x"))},
         {"else_branch", GraphBox(branch("Transpose", "x"))}});
  infer_types(b.model);
  EXPECT_EQ(b.type("same"), "float32[N,4]");
  EXPECT_EQ(b.type("other"), "float32[?,?]");
}

TEST(InferModel, IfOfExportersNeedsOnlyTheTakenBranchToMakeSense) {
  Builder b;
  const ValueId x = b.input("x", "float32[N,4]");
  const ValueId shape = b.add("Shape", {x}, "shape");
  const ValueId size =
      b.add("Gather", {shape, b.constant(Tensor::scalar<std::int64_t>(1))}, "size");
  const ValueId is_one =
      b.add("Equal", {size, b.constant(Tensor::scalar<std::int64_t>(1))}, "is_one");
  Graph squeeze = branch("Squeeze", "x");
  squeeze.nodes[0].set("axes", list({1}));
  b.model.opsets[""] = 11;
  b.add("If", {is_one}, "out",
        {{"then_branch", GraphBox(std::move(squeeze))},
         {"else_branch", GraphBox(branch("Identity", "x"))}});
  infer_types(b.model);
  EXPECT_EQ(b.type("out"), "float32[N,4]");
}

TEST(InferModel, ScanStacksAlongTheScannedLength) {
  Graph body;
  const ValueId state = body.add_value(named_value("state"));
  const ValueId item = body.add_value(named_value("item"));
  body.inputs = {state, item};
  const ValueId sum = body.add_node("Add", {state, item}, {"sum"}).outputs[0];
  const ValueId out = body.add_node("Relu", {item}, {"out"}).outputs[0];
  body.outputs = {sum, out};
  Builder b;
  const ValueId initial = b.input("initial", "float32[4]");
  const ValueId data = b.input("data", "float32[T,4]");
  Node& node = b.model.graph.add_node("Scan", {initial, data}, {"final", "all"});
  node.set("num_scan_inputs", std::int64_t{1});
  node.set("body", GraphBox(std::move(body)));
  infer_types(b.model);
  EXPECT_EQ(b.type("all"), "float32[T,4]");
  EXPECT_EQ(b.type("final"), "float32[...]");
}

Function twice(const std::string& name, const std::string& inner) {
  Function function;
  function.name = name;
  function.domain = "f";
  function.opsets = {{"", 17}, {"f", 1}};
  const ValueId x = function.body.add_value(named_value("x"));
  function.body.inputs = {x};
  ValueId last = x;
  for (const char* output : {"a", "b"}) {
    Node& node = function.body.add_node(inner, {last}, {output});
    node.domain = inner == "Relu" ? "" : "f";
    last = node.outputs[0];
  }
  function.body.outputs = {last};
  return function;
}

TEST(InferModel, SeesThroughFunctions) {
  Builder b;
  b.model.functions = {twice("Inner", "Relu"), twice("Outer", "Inner")};
  b.model.graph.add_node("Outer", {b.input("x", "float32[N,4]")}, {"y"}).domain = "f";
  infer_types(b.model);
  EXPECT_EQ(b.type("y"), "float32[N,4]");
}

TEST(InferModel, FunctionsThatCallThemselvesEnd) {
  Builder b;
  b.model.functions = {twice("Loop", "Loop")};
  b.model.graph.add_node("Loop", {b.input("x", "float32[N,4]")}, {"y"}).domain = "f";
  infer_types(b.model);
  EXPECT_EQ(b.type("y"), "unknown");
}

TEST(InferModel, AThousandNodesTakeMilliseconds) {
  Builder b;
  ValueId x = b.input("x", "float32[N,16,H,W]");
  const ValueId weights = b.constant(Tensor::zeros(DType::Float32, {16, 16, 3, 3}));
  for (int i = 0; i < 500; ++i) {
    const ValueId conv =
        b.add("Conv", {x, weights}, "conv" + std::to_string(i), {{"pads", list({1, 1, 1, 1})}});
    x = b.add("Add", {conv, x}, "add" + std::to_string(i));
  }
  const auto start = std::chrono::steady_clock::now();
  infer_types(b.model);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", std::to_string(took.count()));
  EXPECT_EQ(b.type("add499"), "float32[N,16,H,W]");
  EXPECT_LT(took.count(), 200) << "expected under 10 ms on an idle machine";
}

TEST(InferModel, RefusesEmptyNamesOfWhatANodeNeeds) {
  Builder b;
  const ValueId x = b.input("x", "float32[N,4]");
  b.add("MatMul", {kNoValue, x}, "y");
  EXPECT_EQ(message_of(b.model),
            "MatMul node 'y': input 0 of MatMul is left out (its name is empty), but it needs it");
  b.model.graph.nodes[0].inputs = {x, x, kNoValue};
  b.model.graph.nodes[0].op_type = "Concat";
  EXPECT_NE(message_of(b.model).find("input 2 of Concat is left out"), std::string::npos);
  Builder c;
  c.add("Relu", {c.input("x", "float32[N,4]")}, "y");
  c.model.graph.nodes[0].outputs[0] = kNoValue;
  EXPECT_NE(message_of(c.model).find("Relu has no name for its result"), std::string::npos);
}

TEST(InferModel, AllowsEmptyNamesOfWhatIsOptional) {
  Builder b;
  const ValueId x = b.input("x", "float32[3,N,4]");
  const ValueId w = b.constant(Tensor::zeros(DType::Float32, {1, 8, 4}));
  const ValueId r = b.constant(Tensor::zeros(DType::Float32, {1, 8, 2}));
  b.add("LSTM", {x, w, r}, "all", {{"hidden_size", std::int64_t{2}}});
  b.model.graph.nodes[0].outputs[0] = kNoValue;
  b.add("Clip", {x, kNoValue, b.constant(Tensor::scalar(1.0F))}, "y");
  EXPECT_EQ(message_of(b.model), "no error");
}

}  // namespace
}  // namespace quench::testing
