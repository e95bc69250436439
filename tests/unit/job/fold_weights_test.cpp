// SPDX-License-Identifier: Apache-2.0
// Weights that are computed from constants, in every type of quantisation.
#include "lower/fold_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "quench/quantize.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

namespace fs = std::filesystem;
using testing::Builder;

std::vector<float> wave(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 0.1F * static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
  }
  return values;
}

Builder& ints(Builder& b, const std::string& name, std::vector<std::int64_t> values) {
  return b.constant(name,
                    Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
}

/// x [n, 6] times a weight [6, 4] called wt, which `op` makes of constants.
Builder computed(const std::string& op) {
  Builder b;
  b.input("x", testing::dims({-1, 6}));
  if (op == "Transpose") {
    b.numbers("w", {4, 6}, wave(24)).node(op, {"w"}, {"wt"});
  } else if (op == "Reshape") {
    ints(b.numbers("w", {24}, wave(24)), "shape", {6, 4}).node(op, {"w", "shape"}, {"wt"});
  } else if (op == "Slice") {
    b.numbers("w", {8, 4}, wave(32));
    ints(ints(b, "begin", {1}), "end", {7}).node(op, {"w", "begin", "end"}, {"wt"});
  } else if (op == "Concat") {
    b.numbers("a", {2, 4}, wave(8)).numbers("w", {4, 4}, wave(16));
    b.node(op, {"a", "w"}, {"wt"}).set("axis", std::int64_t{0});
  } else {
    b.numbers("w", {6, 4}, wave(24)).numbers("s", {4}, {1, 2, 0.5F, 3});
    b.node(op, {"w", "s"}, {"wt"});
  }
  b.node("MatMul", {"x", "wt"}, {"y"});
  b.output("y");
  return b;
}

/// Rows of a table [9, 6], and their products with all of its rows.
Builder tied() {
  Builder b;
  b.input("ids", testing::dims({-1, 3}), DType::Int64).numbers("e", {9, 6}, wave(54));
  b.node("Gather", {"e", "ids"}, {"rows"});
  b.node("Transpose", {"e"}, {"et"});
  b.node("MatMul", {"rows", "et"}, {"y"});
  b.output("y");
  return b;
}

class FoldWeights : public ::testing::Test {
 protected:
  FoldWeights() : folder_(fs::temp_directory_path() / "quench_fold_weights") {
    fs::create_directories(folder_);
  }
  ~FoldWeights() override { fs::remove_all(folder_); }

  Model quantized(const Model& model, QuantType type) {
    const std::string path = (folder_ / "model.onnx").string();
    const std::string out = (folder_ / "out.onnx").string();
    save(model, path);
    QuantizeOptions options;
    options.type = type;
    if (type == QuantType::Full) options.data.path = samples_for(model);
    quantize(path, out, options);
    return load(out);
  }
  static std::size_t count(const Graph& graph, std::string_view op) {
    return static_cast<std::size_t>(
        std::ranges::count(graph.nodes, op, [](const Node& node) { return node.op_type; }));
  }

  fs::path folder_;

 private:
  std::string samples_for(const Model& model) {
    const bool numbers = model.graph[model.graph.inputs[0]].type.dtype == DType::Int64;
    const std::string path = (folder_ / "x.npy").string();
    write_npy(numbers ? Tensor::of<std::int64_t>({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 5})
                      : Tensor::of<float>({8, 6}, wave(48)),
              path);
    return path;
  }
};

TEST_F(FoldWeights, AllTypesStoreIntegers) {
  for (const char* op : {"Transpose", "Reshape", "Slice", "Concat", "Mul"}) {
    for (const QuantType type : {QuantType::Full, QuantType::Weight, QuantType::Dynamic}) {
      SCOPED_TRACE(std::string(op) + " " + std::to_string(static_cast<int>(type)));
      const Model made = quantized(computed(op).model, type);
      const Tensor* integers = made.graph.constant(made.graph.find("wt_quantized"));
      ASSERT_NE(integers, nullptr);
      EXPECT_EQ(integers->dtype(), DType::Int8);
      EXPECT_EQ(integers->shape(), (Shape{6, 4}));
      EXPECT_EQ(made.graph.find("w"), kNoValue);
    }
  }
}

TEST_F(FoldWeights, ATiedTableIsStoredOnceInAWeightOnlyModel) {
  const Model made = quantized(tied().model, QuantType::Weight);
  EXPECT_EQ(made.graph.find("e"), kNoValue);
  EXPECT_NE(made.graph.constant(made.graph.find("e_quantized")), nullptr);
  EXPECT_EQ(made.graph.find("et_quantized"), kNoValue);
  EXPECT_EQ(count(made.graph, "Transpose"), 1U);
}

TEST_F(FoldWeights, ATiedProductOnIntegersHasItsOwn) {
  for (const QuantType type : {QuantType::Full, QuantType::Dynamic}) {
    const Model made = quantized(tied().model, type);
    const Tensor* integers = made.graph.constant(made.graph.find("et_quantized"));
    ASSERT_NE(integers, nullptr);
    EXPECT_EQ(integers->shape(), (Shape{6, 9}));
    EXPECT_EQ(count(made.graph, "Transpose"), 0U);
  }
}

TEST_F(FoldWeights, LeavesWhatGrowsOrIsRandom) {
  Builder b;
  b.input("x", testing::dims({-1, 64})).numbers("one", {1, 1}, {2});
  ints(b, "shape", {64, 64}).node("Expand", {"one", "shape"}, {"large"});
  b.node("RandomNormalLike", {"one"}, {"dice"});
  b.node("MatMul", {"x", "large"}, {"y"});
  b.node("Mul", {"y", "dice"}, {"z"});
  b.output("z");
  infer_types(b.model);
  const std::string before = b.text();
  fold_weights(b.model, SharedTables::Copied);
  EXPECT_EQ(b.text(), before);
}

}  // namespace
}  // namespace quench
