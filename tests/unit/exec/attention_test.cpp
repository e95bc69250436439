// SPDX-License-Identifier: Apache-2.0
// Attention in one step: what the operators one by one compute, whatever the shapes and masks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;

struct Sizes {
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, depth = 1, width = 1;
};

enum class Mask { None, Keys, Rows, Whole, OneNumber };

Shape mask_shape(const Sizes& sizes, Mask mask) {
  switch (mask) {
    case Mask::Keys:
      return {sizes.batch, 1, 1, sizes.keys};
    case Mask::Rows:
      return {sizes.queries, sizes.keys};
    case Mask::Whole:
      return {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    default:
      return {sizes.batch, 1, sizes.queries, 1};
  }
}

std::vector<Dim> fixed(const Shape& shape) {
  std::vector<Dim> dims;
  for (const std::int64_t size : shape) dims.push_back({.value = size, .symbol = {}});
  return dims;
}

/// [batch, length, heads, size] -> heads in front, as exporters write it.
Model attention_model(const Sizes& sizes, Mask mask, bool divides) {
  Builder b;
  b.input("q", fixed({sizes.batch, sizes.queries, sizes.heads, sizes.depth}));
  b.input("k", fixed({sizes.batch, sizes.keys, sizes.heads, sizes.depth}));
  b.input("v", fixed({sizes.batch, sizes.keys, sizes.heads, sizes.width}));
  b.number("eight", 8);
  const std::vector<std::int64_t> plain = {0, 2, 1, 3};
  b.node("Transpose", {"q"}, {"query"}).set("perm", plain);
  b.node("Transpose", {"k"}, {"key"}).set("perm", std::vector<std::int64_t>{0, 2, 3, 1});
  b.node("Transpose", {"v"}, {"value"}).set("perm", plain);
  b.node("MatMul", {"query", "key"}, {"scores"});
  std::string last = "scores";
  if (divides) b.node("Div", {last, "eight"}, {"divided"}), last = "divided";
  if (mask != Mask::None) {
    b.input("mask", fixed(mask_shape(sizes, mask)));
    b.node("Add", {last, "mask"}, {"masked"}), last = "masked";
  }
  b.node("Softmax", {last}, {"shares"}).set("axis", std::int64_t{-1});
  b.node("MatMul", {"shares", "value"}, {"mixed"});
  b.node("Transpose", {"mixed"}, {"y"}).set("perm", plain);
  b.output("y");
  return b.model;
}

Tensor random_tensor(const Shape& shape, std::mt19937& random) {
  std::uniform_real_distribution<float> numbers(-2, 2);
  Tensor tensor = Tensor::zeros(DType::Float32, shape);
  for (float& each : tensor.mutable_data<float>()) each = numbers(random);
  return tensor;
}

TensorMap random_feeds(const Sizes& sizes, Mask mask, std::mt19937& random) {
  TensorMap feeds;
  feeds["q"] = random_tensor({sizes.batch, sizes.queries, sizes.heads, sizes.depth}, random);
  feeds["k"] = random_tensor({sizes.batch, sizes.keys, sizes.heads, sizes.depth}, random);
  feeds["v"] = random_tensor({sizes.batch, sizes.keys, sizes.heads, sizes.width}, random);
  if (mask != Mask::None) feeds["mask"] = random_tensor(mask_shape(sizes, mask), random);
  return feeds;
}

void expect_near(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const auto a = got.data<float>();
  const auto b = wanted.data<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << "element " << i;
    if (std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], 2e-5F) << "element " << i;
  }
}

class AttentionMasks : public ::testing::TestWithParam<Mask> {};

TEST_P(AttentionMasks, EqualOperatorsOneByOne) {
  std::mt19937 random(7);
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  for (int round = 0; round < 60; ++round) {
    const Sizes sizes{up_to(3), up_to(3), up_to(60), up_to(140), up_to(70), up_to(140)};
    SCOPED_TRACE(::testing::Message()
                 << sizes.batch << " " << sizes.heads << " " << sizes.queries << " " << sizes.keys
                 << " " << sizes.depth << " " << sizes.width);
    const bool divides = round % 2 == 0;
    const TensorMap feeds = random_feeds(sizes, GetParam(), random);
    Session plain(attention_model(sizes, GetParam(), divides), {.reference = true});
    const TensorMap wanted = plain.run(feeds);
    for (const int threads : {1, 2}) {
      Session fast(attention_model(sizes, GetParam(), divides), {}, Context{.threads = threads});
      expect_near(fast.run(feeds).at("y"), wanted.at("y"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionMasks,
                         ::testing::Values(Mask::None, Mask::Keys, Mask::Rows, Mask::Whole,
                                           Mask::OneNumber));

/// Rows that see nothing, and rows with NaN, are NaN and spoil no other.
TEST(Attention, KeepsNaNToItsRows) {
  const Sizes sizes{.batch = 1, .heads = 2, .queries = 30, .keys = 19, .depth = 8, .width = 20};
  std::mt19937 random(3);
  TensorMap feeds = random_feeds(sizes, Mask::Rows, random);
  const auto mask = feeds["mask"].mutable_data<float>();
  const float never = -std::numeric_limits<float>::infinity();
  for (std::size_t key = 0; key < 19; ++key) {
    mask[key] = never;
    mask[2 * 19 + key] = -10000.0F;
    if (key != 18) mask[3 * 19 + key] = never;
  }
  feeds["q"].mutable_data<float>()[5 * 2 * 8] = std::numeric_limits<float>::quiet_NaN();
  Session plain(attention_model(sizes, Mask::Rows, true), {.reference = true});
  Session fast(attention_model(sizes, Mask::Rows, true), {});
  const Tensor wanted = plain.run(feeds).at("y");
  EXPECT_TRUE(std::isnan(wanted.data<float>()[0]));
  EXPECT_FALSE(std::isnan(wanted.data<float>()[2 * 2 * 20]));
  expect_near(fast.run(feeds).at("y"), wanted);
}

}  // namespace
}  // namespace quench
