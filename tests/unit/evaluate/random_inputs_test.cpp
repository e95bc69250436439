// SPDX-License-Identifier: Apache-2.0
// Shapes for open dimensions, and the tensors that fill them.
#include "evaluate/random_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "quench/error.h"

namespace quench {
namespace {

Value input(std::string name, std::vector<Dim> dims, DType dtype = DType::Float32) {
  Value value;
  value.name = std::move(name);
  value.type = ValueType::tensor(dtype, std::move(dims));
  return value;
}

template <typename Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ResolveShapes, OpenFirstDimensionIsTheBatch) {
  const auto shapes = resolve_shapes({input("x", {{-1, "n"}, {3, ""}})}, {}, 5);
  EXPECT_EQ(shapes.at("x"), (Shape{5, 3}));
}

TEST(ResolveShapes, GivenSymbolHoldsForEveryInput) {
  const std::vector<Value> inputs{input("ids", {{-1, "n"}, {-1, "seq"}}),
                                  input("mask", {{-1, "n"}, {-1, "seq"}})};
  const auto shapes = resolve_shapes(inputs, {{"ids", {2, 128}}}, 1);
  EXPECT_EQ(shapes.at("mask"), (Shape{2, 128}));
}

TEST(ResolveShapes, DimensionThatStaysOpenNamesTheFlag) {
  const std::vector<Value> inputs{input("x", {{-1, ""}, {3, ""}, {-1, "h"}})};
  EXPECT_NE(message_of([&] { resolve_shapes(inputs, {}, 1); }).find("--shape x="),
            std::string::npos);
}

TEST(ResolveShapes, RefusesWhatDoesNotFit) {
  const std::vector<Value> inputs{input("x", {{-1, ""}, {3, ""}})};
  for (const Shape& shape : {Shape{1}, Shape{1, 4}, Shape{1, 3, 1}}) {
    EXPECT_THROW(resolve_shapes(inputs, {{"x", shape}}, 1), Error) << to_string(shape);
  }
  EXPECT_THROW(resolve_shapes(inputs, {{"y", {1, 3}}}, 1), Error);
  EXPECT_THROW(resolve_shapes(inputs, {{"x", {std::int64_t{1} << 60, 3}}}, 1), Error);
}

TEST(EffectiveBatch, FixedBatchWins) {
  EXPECT_EQ(effective_batch({input("x", {{4, ""}, {3, ""}})}, 8), 4);
  EXPECT_EQ(effective_batch({input("x", {{-1, "n"}, {3, ""}})}, 8), 8);
  EXPECT_EQ(effective_batch({input("s", {}), input("x", {{2, ""}})}, 8), 2);
}

TEST(RandomTensor, IsNormalAndRepeatable) {
  std::mt19937_64 generator(1);
  const Tensor tensor = random_tensor(DType::Float32, {10001}, generator);
  double sum = 0;
  double squares = 0;
  for (const float x : tensor.data<float>()) {
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / 10001, 0, 0.05);
  EXPECT_NEAR(squares / 10001, 1, 0.05);
  generator.seed(1);
  EXPECT_EQ(random_tensor(DType::Float32, {10001}, generator), tensor);
}

TEST(RandomTensor, WideIntegersAreSafeIndices) {
  std::mt19937_64 generator(1);
  const Tensor tensor = random_tensor(DType::Int64, {100}, generator);
  bool zero = false;
  bool one = false;
  for (const std::int64_t x : tensor.data<std::int64_t>()) {
    ASSERT_TRUE(x == 0 || x == 1);
    zero |= x == 0;
    one |= x == 1;
  }
  EXPECT_TRUE(zero && one);
}

TEST(RandomFeeds, RefusesStrings) {
  std::mt19937_64 generator(1);
  const std::vector<Value> inputs{input("s", {{2, ""}}, DType::String)};
  EXPECT_NE(message_of([&] {
              random_feeds(inputs, {{"s", {2}}}, generator);
            }).find("'s'"),
            std::string::npos);
}

}  // namespace
}  // namespace quench
