// SPDX-License-Identifier: Apache-2.0
// Saving: nothing is lost when it fails, and models built in memory can be written.
#include <gtest/gtest.h>

#include "formats/onnx/file.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

TEST(Save, FailureLeavesTheOldFile) {
  const Folder folder;
  write_bytes(folder / "m.onnx", "old");
  Model broken = load_proto(small_model());
  broken.graph.nodes[0].inputs[0] = broken.graph.add_fresh("nobody_makes_this");
  try {
    save(broken, folder / "m.onnx");
    FAIL() << "wrote a model that cannot be read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nobody_makes_this"), std::string::npos);
  }
  EXPECT_EQ(read_bytes(folder / "m.onnx"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m.onnx"});
}

TEST(Save, FolderThatIsNotThereIsNamed) {
  const Folder folder;
  try {
    save(load_proto(small_model()), folder / "nowhere/m.onnx");
    FAIL() << "wrote into a folder that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_NE(std::string(error.what()).find("nowhere/m.onnx"), std::string::npos);
  }
}

TEST(Save, ModelBuiltInMemory) {
  Model model;
  model.opsets[""] = 17;
  Graph& graph = model.graph;
  Value x;
  x.name = "x";
  x.type = ValueType::tensor(DType::Float32, std::vector<Dim>{{-1, "n"}, {3, ""}});
  graph.inputs = {graph.add_value(x)};
  const ValueId w = graph.add_constant("w", Tensor::of<float>({3}, {1, 2, 3}));
  Node& node = graph.add_node("Add", {graph.inputs[0], w}, {"y"});
  node.name = "add";
  node.set("alpha", 0.5F);
  node.set("table", Tensor::of<std::int64_t>({2}, {4, 5}));
  graph.outputs = {node.outputs[0]};
  const Folder folder;
  save(model, folder / "m.onnx");
  const Model again = load(folder / "m.onnx");
  EXPECT_EQ(dump(again), dump(model));
  EXPECT_EQ(again.graph.nodes[0].get<Tensor>("table")->data<std::int64_t>()[1], 5);
}

TEST(Save, OverTheFileItWasReadFrom) {
  const Folder folder;
  onnx::ModelProto proto = small_model();
  add_weight(*proto.mutable_graph(), "w", std::vector<float>(5000, 1.5F));
  write_bytes(folder / "m.onnx", proto.SerializeAsString());
  Model model = load(folder / "m.onnx");
  model.graph.name = "another";
  save(model, folder / "m.onnx");
  const Model again = load(folder / "m.onnx");
  EXPECT_EQ(again.graph.name, "another");
  EXPECT_EQ(again.graph.constant(again.graph.find("w"))->data<float>()[4999], 1.5F);
}

TEST(Save, ReadBackNoticesEveryDifference) {
  onnx::ModelProto proto = small_model();
  add_weight(*proto.mutable_graph(), "w", {1, 2});
  const Model model = load_proto(proto);
  EXPECT_NO_THROW(onnx::expect_same(model, load_proto(proto)));
  const auto differs = [&](auto change) {
    Model other = model;
    change(other.graph);
    EXPECT_THROW(onnx::expect_same(model, other), Error);
  };
  differs([](Graph& g) { g.nodes[0].op_type = "Neg"; });
  differs([](Graph& g) { g.nodes.clear(); });
  differs([](Graph& g) { g.inputs.clear(); });
  differs([](Graph& g) { g[g.find("w")].constant->mutable_data<float>()[0] = 9; });
  differs([](Graph& g) { g.nodes[0].set("axis", std::int64_t{1}); });
}

}  // namespace
}  // namespace quench::testing
