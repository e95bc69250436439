// SPDX-License-Identifier: Apache-2.0
// Models written as Paddle programs: what was read from one is the same operators, and what our own
// rows write computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "formats/paddle/framework.pb.h"
#include "quench/session.h"
#include "support/paths.h"
#include "unit/formats/onnx_builder.h"
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

namespace fs = std::filesystem;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

paddle::ProgramDesc program_at(const std::string& path) {
  paddle::ProgramDesc program;
  EXPECT_TRUE(program.ParseFromString(read_all(path))) << path;
  return program;
}

Tensor random_tensor(const Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
  for (float& value : values) value = normal(generator);
  return Tensor::of<float>(shape, std::span<const float>(values));
}

std::string error_of(const Model& model, const std::string& path) {
  try {
    save(model, path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The model is the same to the last digits after it was written and read.
void expect_same_after_writing(const Model& model, const TensorMap& feeds,
                               const std::string& file = "m.pdmodel") {
  const Folder folder;
  save(model, folder / file);
  Session before(model);
  Session after(load(folder / file));
  const TensorMap wanted = before.run(feeds);
  const TensorMap found = after.run(feeds);
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) {
    const std::vector<float> x = to_float(found.at(name));
    const std::vector<float> y = to_float(tensor);
    ASSERT_EQ(found.at(name).shape(), tensor.shape()) << name;
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(x[i], y[i], 1e-5F * std::max(1.0F, std::abs(y[i]))) << name << "[" << i << "]";
    }
  }
}

/// One node behind an image, written and read again.
struct OneNode {
  std::string op_type;
  std::function<void(Builder&, Node&)> more = [](Builder&, Node&) {};
};

void PrintTo(const OneNode& each, std::ostream* out) { *out << each.op_type; }

class WritesNode : public ::testing::TestWithParam<OneNode> {};

Model model_of(const OneNode& param) {
  Builder b;
  b.model.opsets[""] = 17;
  b.input("x", {{.symbol = "N"}, {.value = 4}, {.value = 6}, {.value = 6}});
  Node& node = b.node(param.op_type, {"x"}, {"y"});
  param.more(b, node);
  b.output("y");
  return b.model;
}

TEST_P(WritesNode, ComputesTheSame) {
  expect_same_after_writing(model_of(GetParam()), {{"x", random_tensor({2, 4, 6, 6}, 1)}});
}

TEST_P(WritesNode, ComputesTheSameAsPir) {
  const Model model = model_of(GetParam());
  if (model.graph.nodes[0].get_string("mode", "") == "reflect") {
    const Folder folder;
    EXPECT_NE(error_of(model, folder / "m.json").find("pad2d"), std::string::npos);
    return;
  }
  expect_same_after_writing(model, {{"x", random_tensor({2, 4, 6, 6}, 1)}}, "m.json");
}

using IntList = std::vector<std::int64_t>;

void add_input(Builder& b, Node& node, const std::string& name, const Tensor& tensor) {
  b.constant(name, tensor);
  node.inputs.push_back(b.model.graph.find(name));
}

OneNode with(std::string op_type, std::vector<std::pair<std::string, Attribute::Data>> attributes,
             std::vector<Tensor> constants = {}) {
  return {std::move(op_type), [=](Builder& b, Node& node) {
            for (const auto& [name, data] : attributes) node.set(name, data);
            for (std::size_t i = 0; i < constants.size(); ++i) {
              add_input(b, b.model.graph.nodes.back(), "c" + std::to_string(i), constants[i]);
            }
          }};
}

Tensor ints(std::initializer_list<std::int64_t> values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<OneNode> nodes() {
  std::vector<OneNode> all;
  for (const char* name : {"Relu",          "Sigmoid",
                           "Tanh",          "Exp",
                           "Abs",           "Floor",
                           "Ceil",          "Erf",
                           "Sin",           "Cos",
                           "Sign",          "Softsign",
                           "Identity",      "Neg",
                           "Softplus",      "Elu",
                           "LeakyRelu",     "HardSigmoid",
                           "HardSwish",     "Softmax",
                           "LogSoftmax",    "GlobalAveragePool",
                           "GlobalMaxPool", "Flatten"}) {
    all.push_back({name});
  }
  return all;
}

/// Those that need attributes or constants.
std::vector<OneNode> nodes_with_more() {
  std::vector<OneNode> all;
  const Tensor bias = random_tensor({8}, 3);
  const IntList pads{1, 0, 2, 1};
  all.insert(all.end(),
             {with("Conv", {{"pads", pads}, {"strides", IntList{2, 1}}},
                   {random_tensor({8, 4, 3, 3}, 2), bias}),
              with("Conv", {{"group", std::int64_t{4}}}, {random_tensor({8, 1, 3, 3}, 2), bias}),
              with("ConvTranspose", {{"strides", IntList{2, 2}}, {"output_padding", IntList{1, 1}}},
                   {random_tensor({4, 8, 3, 3}, 2), bias}),
              with("MatMul", {}, {random_tensor({6, 5}, 2)}),
              with("BatchNormalization", {},
                   {random_tensor({4}, 2), random_tensor({4}, 3), random_tensor({4}, 4),
                    Tensor::of<float>({4}, {1.0F, 2.0F, 0.5F, 3.0F})}),
              with("LayerNormalization", {{"axis", std::int64_t{-1}}},
                   {random_tensor({6}, 2), random_tensor({6}, 3)}),
              with("InstanceNormalization", {}, {random_tensor({4}, 2), random_tensor({4}, 3)}),
              with("LpNormalization", {{"axis", std::int64_t{1}}}),
              with("Clip", {}, {Tensor::scalar(0.0F), Tensor::scalar(6.0F)}),
              with("Clip", {}, {Tensor::scalar(-0.5F), Tensor::scalar(0.25F)}),
              with("PRelu", {}, {random_tensor({4, 1, 1}, 2)}),
              with("Add", {}, {random_tensor({4, 1, 1}, 2)}),
              with("Sub", {}, {random_tensor({6}, 2)}),
              with("Mul", {}, {random_tensor({1, 4, 1, 1}, 2)}),
              with("Div", {}, {Tensor::scalar(3.0F)}),
              with("Max", {}, {random_tensor({6}, 2), random_tensor({6}, 3)}),
              with("MaxPool", {{"kernel_shape", IntList{3, 3}}, {"pads", pads}}),
              with("AveragePool", {{"kernel_shape", IntList{3, 3}}, {"pads", pads}}),
              with("AveragePool", {{"kernel_shape", IntList{2, 2}},
                                   {"count_include_pad", std::int64_t{1}},
                                   {"pads", IntList{1, 1, 0, 0}}}),
              with("ReduceMean", {{"axes", IntList{2, 3}}}),
              with("ReduceMax", {{"axes", IntList{1}}, {"keepdims", std::int64_t{0}}}),
              with("Reshape", {}, {ints({0, 2, 2, -1})}),
              with("Transpose", {{"perm", IntList{0, 2, 3, 1}}}),
              with("Unsqueeze", {}, {ints({1})}),
              with("Slice", {}, {ints({1, -3}), ints({3, 1000}), ints({1, 2})}),
              with("Slice", {}, {ints({0}), ints({6}), ints({3}), ints({2})}),
              with("Tile", {}, {ints({1, 2, 1, 1})}),
              with("Pad", {{"mode", std::string("constant")}},
                   {ints({0, 0, 1, 2, 0, 0, 0, 1}), Tensor::scalar(0.5F)}),
              with("Pad", {{"mode", std::string("reflect")}}, {ints({0, 0, 1, 2, 0, 0, 0, 1})}),
              with("DepthToSpace", {{"blocksize", std::int64_t{2}}, {"mode", std::string("CRD")}}),
              with("Gather", {{"axis", std::int64_t{1}}}, {ints({2, 0})}),
              with("Gather", {{"axis", std::int64_t{2}}}, {Tensor::scalar(std::int64_t{-1})}),
              with("Concat", {{"axis", std::int64_t{3}}}, {random_tensor({2, 4, 6, 2}, 2)})});
  return all;
}

INSTANTIATE_TEST_SUITE_P(More, WritesNode, ::testing::ValuesIn(nodes_with_more()),
                         [](const auto& each) {
                           return each.param.op_type + std::to_string(each.index);
                         });
INSTANTIATE_TEST_SUITE_P(Plain, WritesNode, ::testing::ValuesIn(nodes()), [](const auto& each) {
  return each.param.op_type + std::to_string(each.index);
});

Model two_layers();

/// Programs that Paddle wrote.
TEST(PaddleWrite, UntouchedOperatorsAreTheSameBytes) {
  for (const auto& entry :
       fs::directory_iterator(source_dir() / "tests/unit/formats/paddle_cases")) {
    // Fake quantisation of parameters becomes integers, and so does what reads them; a loop whose
    // variable has no meaning before it is written anew, and so is an array that is written again.
    const std::set<std::string> anew{"more_old", "exported", "filled"};
    if (entry.path().extension() != ".pdmodel" || anew.contains(entry.path().stem().string())) {
      continue;
    }
    const Folder folder;
    save(load(entry.path().string()), folder / "m.pdmodel");
    const auto before = program_at(entry.path().string());
    const auto after = program_at(folder / "m.pdmodel");
    std::vector<std::string> known;
    for (const auto& op : before.blocks(0).ops()) known.push_back(op.SerializeAsString());
    int same = 0;
    for (const auto& op : after.blocks(0).ops()) {
      same += std::ranges::find(known, op.SerializeAsString()) != known.end() ? 1 : 0;
    }
    EXPECT_GE(same, after.blocks(0).ops_size() * 9 / 10) << entry.path();
  }
}

/// The operators of a PIR program by their code, attributes and types, but not by the numbers of
/// their values; what gives attributes is left out.
std::multiset<std::string> pir_operators(const std::string& path) {
  const auto root = nlohmann::json::parse(read_all(path));
  std::multiset<std::string> found;
  for (auto op : root["program"]["regions"][0]["blocks"][0]["ops"]) {
    const auto code = op["#"].get<std::string>();
    if (!code.starts_with("1.") || code.starts_with("1.full")) continue;
    for (const char* list : {"I", "O"}) {
      for (auto& each : op[list]) each.erase("%");
    }
    found.insert(op.dump());
  }
  return found;
}

/// PaddleSlim notes the scales of results in pairs that compute nothing; integer kernels need them.
TEST(PaddleWrite, ScalesThatAreOnlyNotedAreKept) {
  const fs::path path = shared_dir() / "data/paddle-golden/quantised/q_onnx/model.pdmodel";
  if (!fs::exists(path)) GTEST_SKIP() << "no shared folder";
  const Folder folder;
  save(load(path.string()), folder / "m.pdmodel");
  // Also from what we wrote.
  save(load(folder / "m.pdmodel"), folder / "again.pdmodel");
  for (const char* file : {"m.pdmodel", "again.pdmodel"}) {
    int layers = 0;
    const auto program = program_at(folder / file);
    for (const auto& op : program.blocks(0).ops()) {
      const bool layer = op.type() == "conv2d" || op.type() == "depthwise_conv2d";
      const bool noted = std::ranges::any_of(op.attrs(), [](const auto& attr) {
        return attr.name() == "out_threshold" && attr.f() > 0;
      });
      if (!layer) continue;
      ++layers;
      EXPECT_TRUE(noted) << file << ": " << op.outputs(0).arguments(0);
    }
    EXPECT_EQ(layers, 53) << file;
  }
}

TEST(PaddleWrite, UntouchedOperatorsOfPirAreTheSame) {
  const fs::path cases = source_dir() / "tests/unit/formats/paddle_cases/pir";
  for (const char* name : {"activation", "arithmetic", "layer", "reduce", "shape", "image"}) {
    const Folder folder;
    const std::string path = (cases / (std::string(name) + ".json")).string();
    save(load(path), folder / "m.json");
    EXPECT_EQ(pir_operators(folder / "m.json"), pir_operators(path)) << name;
  }
}

/// What goes round in a loop has the types that the loop declares, also what has no meaning before
/// it: Paddle reads no other.
TEST(PaddleWrite, LoopsOfPirStartFromWhatTheyDeclare) {
  const Folder folder;
  save(load((source_dir() / "tests/unit/formats/paddle_cases/pir/exported.json").string()),
       folder / "m.json");
  const auto root = nlohmann::json::parse(read_all(folder / "m.json"));
  std::map<int, nlohmann::json> types;
  int loops = 0;
  for (const auto& op : root["program"]["regions"][0]["blocks"][0]["ops"]) {
    const auto& made = op["O"];
    for (const auto& each : made.is_array() ? made : nlohmann::json::array({made})) {
      if (each.contains("TT")) types[each["%"].get<int>()] = each["TT"];
    }
    if (op["#"] != "1.while") continue;
    ++loops;
    const auto& taken = op["regions"][0]["blocks"][0]["args"];
    for (std::size_t i = 0; i < taken.size(); ++i) {
      EXPECT_EQ(types.at(op["I"][i + 1]["%"].get<int>()), taken[i]["TT"]) << i;
    }
  }
  EXPECT_EQ(loops, 1);
}

/// Paddle's own tool for quantisation stops at an operator that does not say so.
TEST(PaddleWrite, OperatorsOfPirAreOfTheForwardPassInPrograms) {
  const fs::path cases = source_dir() / "tests/unit/formats/paddle_cases/pir";
  for (const char* name : {"layer", "image", "detection"}) {
    const Folder folder;
    save(load((cases / (std::string(name) + ".json")).string()), folder / "m.pdmodel");
    const auto program = program_at(folder / "m.pdmodel");
    for (const auto& op : program.blocks(0).ops()) {
      EXPECT_TRUE(std::ranges::any_of(
          op.attrs(), [](const auto& attr) { return attr.name() == "op_role" && attr.i() == 0; }))
          << name << ": " << op.type();
    }
  }
}

TEST(PaddleWrite, ProgramsBecomePirAndComputeTheSame) {
  const Model model = two_layers();
  expect_same_after_writing(model, {{"x", random_tensor({2, 4, 6, 6}, 1)}}, "m.json");
  const Folder folder;
  save(model, folder / "m.pdmodel");
  expect_same_after_writing(load(folder / "m.pdmodel"), {{"x", random_tensor({2, 4, 6, 6}, 1)}},
                            "m.json");
}

Model two_layers() {
  Builder b;
  b.model.opsets[""] = 17;
  b.input("x", {{.symbol = "N"}, {.value = 4}, {.value = 6}, {.value = 6}});
  b.constant("w", random_tensor({8, 4, 3, 3}, 2));
  b.constant("bias", random_tensor({8}, 3));
  b.node("Conv", {"x", "w", "bias"}, {"c"});
  b.node("Relu", {"c"}, {"r"});
  b.node("GlobalAveragePool", {"r"}, {"p"});
  b.node("Flatten", {"p"}, {"f"});
  b.constant("m", random_tensor({5, 8}, 4));
  b.node("Gemm", {"f", "m"}, {"y"}).set("transB", std::int64_t{1});
  b.output("y");
  return b.model;
}

/// A recurrent layer of ONNX, of one or two directions.
Model recurrent(const char* op_type, std::int64_t gates, bool both, bool state) {
  const std::int64_t directions = both ? 2 : 1;
  Builder b;
  b.model.opsets[""] = 17;
  b.input("x", {{.value = 4}, {.symbol = "N"}, {.value = 3}});
  b.constant("w", random_tensor({directions, gates * 5, 3}, 2));
  b.constant("r", random_tensor({directions, gates * 5, 5}, 3));
  b.constant("bias", random_tensor({directions, 2 * gates * 5}, 4));
  Node& node = b.node(op_type, {"x", "w", "r", "bias"}, {"y", "last"});
  node.set("hidden_size", std::int64_t{5});
  node.set("direction", std::string(both ? "bidirectional" : "forward"));
  if (gates == 3) node.set("linear_before_reset", std::int64_t{1});
  b.output("y");
  if (state) b.output("last");
  return b.model;
}

/// Stretched to a shape that is known while it runs, from either side.
TEST(PaddleWrite, ComputedShapesAreWritten) {
  Builder b;
  b.model.opsets[""] = 17;
  b.input("x", {{.symbol = "N"}, {.value = 4}, {.value = 6}, {.value = 6}});
  b.input("row", {{.value = 1}, {.value = 6}});
  b.node("Shape", {"x"}, {"shape"});
  b.node("Expand", {"row", "shape"}, {"y"});
  b.output("y");
  const TensorMap feeds{{"x", random_tensor({2, 4, 6, 6}, 1)}, {"row", random_tensor({1, 6}, 2)}};
  expect_same_after_writing(b.model, feeds);
  expect_same_after_writing(b.model, feeds, "m.json");
}

TEST(PaddleWrite, RecurrentLayersComputeTheSame) {
  const TensorMap feeds{{"x", random_tensor({4, 2, 3}, 1)}};
  for (const bool both : {false, true}) {
    expect_same_after_writing(recurrent("LSTM", 4, both, true), feeds);
    expect_same_after_writing(recurrent("GRU", 3, both, false), feeds);
    expect_same_after_writing(recurrent("RNN", 1, both, true), feeds);
  }
}

TEST(PaddleWrite, FilesHaveTheirNames) {
  const Folder folder;
  fs::create_directory(folder / "d");
  save(two_layers(), folder / "d");
  save(two_layers(), folder / "a.pdmodel,b.params");
  save(two_layers(), folder / "__model__");
  for (const char* name : {"d/inference.pdmodel", "d/inference.pdiparams", "a.pdmodel", "b.params",
                           "__model__", "__params__"}) {
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
}

TEST(PaddleWrite, WhatHasNoCounterpartIsListed) {
  Model model = two_layers();
  for (const char* op : {"Round", "Det"}) {
    Node node = model.graph.nodes.back();
    node.op_type = op;
    node.inputs.resize(1);
    node.attributes.clear();
    node.outputs = {model.graph.add_fresh(op)};
    model.graph.nodes.push_back(node);
  }
  const Folder folder;
  const std::string error = error_of(model, folder / "m.pdmodel");
  EXPECT_NE(error.find("Det, Round"), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(folder / "m.pdmodel"));
}

}  // namespace
}  // namespace quench::testing
