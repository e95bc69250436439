// SPDX-License-Identifier: Apache-2.0
// Weights that stay packed in memory give the same results as weights that become floats at once.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quench/error.h"
#include "quench/session.h"

namespace quench::testing {
namespace {

constexpr unsigned kSeed = 4711;

/// Builds a model of one product with a dequantised weight.
class Builder {
 public:
  explicit Builder(Shape input) {
    model_.opsets[""] = 21;
    model_.ir_version = 10;
    std::vector<Dim> dims;
    for (const std::int64_t size : input) dims.push_back({size, ""});
    Value x;
    x.name = "x";
    x.type = ValueType::tensor(DType::Float32, dims);
    graph().inputs = {graph().add_value(x)};
    x_ = normal(std::move(input));
  }

  Graph& graph() { return model_.graph; }
  ValueId x() { return graph().inputs[0]; }

  Tensor normal(Shape shape) {
    Tensor tensor = Tensor::zeros(DType::Float32, std::move(shape));
    std::normal_distribution<float> distribution;
    for (float& each : tensor.mutable_data<float>()) each = distribution(source_);
    return tensor;
  }
  Tensor positive(Shape shape) {
    Tensor tensor = normal(std::move(shape));
    for (float& each : tensor.mutable_data<float>()) each = std::fabs(each) / 20 + 0.001F;
    return tensor;
  }
  Tensor integers(DType dtype, Shape shape) {
    Tensor tensor = Tensor::zeros(dtype, std::move(shape));
    for (std::byte& each : tensor.mutable_bytes()) each = static_cast<std::byte>(source_());
    return tensor;
  }

  /// A dequantised constant.
  ValueId weight(Tensor values, Tensor scale, Tensor zero_point, std::int64_t axis,
                 std::int64_t block = 0) {
    std::vector<ValueId> inputs = {graph().add_constant("q", std::move(values)),
                                   graph().add_constant("s", std::move(scale))};
    if (zero_point.defined()) inputs.push_back(graph().add_constant("z", std::move(zero_point)));
    Node& node = graph().add_node("DequantizeLinear", inputs, {"w"});
    node.set("axis", axis);
    if (block != 0) node.set("block_size", block);
    return node.outputs[0];
  }

  Node& product(const std::string& op, const std::vector<ValueId>& inputs) {
    Node& node = graph().add_node(op, inputs, {"y"});
    graph().outputs = {node.outputs[0]};
    return node;
  }

  std::vector<float> run(Dequantize when, const Tensor& feed) {
    Session session(model_, {.dequantize = when});
    return to_float(session.run({{"x", feed}}).at("y"));
  }

  void expect_same() { expect_same(x_); }
  void expect_same(const Tensor& feed) {
    const std::vector<float> expected = run(Dequantize::AtLoad, feed);
    const std::vector<float> found = run(Dequantize::OnTheFly, feed);
    ASSERT_EQ(found.size(), expected.size());
    double norm = 0;
    double error = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      norm += std::pow(expected[i], 2);
      error += std::pow(found[i] - expected[i], 2);
    }
    EXPECT_GT(norm, 0);
    EXPECT_LE(std::sqrt(error / norm), 1e-6);
  }
  Model& model() { return model_; }

 private:
  std::mt19937 source_{kSeed};
  Model model_;
  Tensor x_;
};

TEST(OnTheFly, MatMulInTiles) {
  // 700 columns of 1024: several tiles, the last one smaller.
  Builder builder({2, 3, 1024});
  const ValueId w =
      builder.weight(builder.integers(DType::Int8, {1024, 700}), builder.positive({700}),
                     builder.integers(DType::Int8, {700}), 1);
  builder.product("MatMul", {builder.x(), w});
  builder.expect_same();
}

TEST(OnTheFly, MatMulOfOneScale) {
  Builder builder({4, 33});
  const ValueId w =
      builder.weight(builder.integers(DType::Int8, {33, 17}), builder.positive({}), Tensor(), 1);
  builder.product("MatMul", {builder.x(), w});
  builder.expect_same();
}

TEST(OnTheFly, MatMulInBlocksOfFourBits) {
  Builder builder({4, 96});
  const ValueId w =
      builder.weight(builder.integers(DType::Int4, {96, 50}), builder.positive({3, 50}),
                     builder.integers(DType::Int4, {3, 50}), 0, 32);
  builder.product("MatMul", {builder.x(), w});
  builder.expect_same();
}

TEST(OnTheFly, GemmWithAllItsParts) {
  for (const std::int64_t transposed : {0, 1}) {
    Builder builder({5, 40});
    const Shape shape = transposed != 0 ? Shape{24, 40} : Shape{40, 24};
    const ValueId w = builder.weight(builder.integers(DType::Int16, shape), builder.positive({24}),
                                     Tensor(), transposed != 0 ? 0 : 1);
    const ValueId bias = builder.graph().add_constant("bias", builder.normal({24}));
    Node& node = builder.product("Gemm", {builder.x(), w, bias});
    node.set("transB", transposed);
    node.set("alpha", 0.5F);
    node.set("beta", 2.0F);
    builder.expect_same();
  }
}

TEST(OnTheFly, Convolutions) {
  for (const std::int64_t groups : {1, 4}) {
    Builder builder({2, 16, 9, 7});
    const ValueId w = builder.weight(builder.integers(DType::Int8, {32, 16 / groups, 3, 3}),
                                     builder.positive({32}), Tensor(), 0);
    const ValueId bias = builder.graph().add_constant("bias", builder.normal({32}));
    Node& node = builder.product("Conv", {builder.x(), w, bias});
    node.set("group", groups);
    node.set("pads", std::vector<std::int64_t>{1, 0, 2, 1});
    node.set("strides", std::vector<std::int64_t>{2, 1});
    builder.expect_same();
  }
}

TEST(OnTheFly, LargeConvolutionInTiles) {
  Builder builder({1, 128, 6, 6});
  const ValueId w = builder.weight(builder.integers(DType::Int8, {300, 128, 3, 3}),
                                   builder.positive({300}), Tensor(), 0);
  builder.product("Conv", {builder.x(), w});
  builder.expect_same();
}

TEST(OnTheFly, TablesAreLookedUp) {
  Builder builder({3});
  builder.graph()[builder.x()].type = ValueType::tensor(DType::Int64, std::vector<Dim>{{3, ""}});
  const ValueId w =
      builder.weight(builder.integers(DType::Int8, {100, 8}), builder.positive({100}), Tensor(), 0);
  builder.product("Gather", {w, builder.x()});
  builder.expect_same(Tensor::of<std::int64_t>({3}, {7, 99, -100}));
  EXPECT_THROW(builder.run(Dequantize::OnTheFly, Tensor::of<std::int64_t>({3}, {0, 100, 0})),
               Error);
}

TEST(OnTheFly, OtherReadersStillGetFloats) {
  // Scales across the rows, and a reader that is no product: both are dequantised at once.
  Builder builder({4, 33});
  const ValueId w =
      builder.weight(builder.integers(DType::Int8, {33, 17}), builder.positive({33}), Tensor(), 0);
  builder.product("MatMul", {builder.x(), w});
  builder.expect_same();
  Builder other({4, 33});
  other.product("Add", {other.x(), other.weight(other.integers(DType::Int8, {33}),
                                                other.positive({}), Tensor(), 0)});
  other.expect_same();
}

}  // namespace
}  // namespace quench::testing
