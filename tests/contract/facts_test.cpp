// SPDX-License-Identifier: Apache-2.0
// What rows say of functions of one number is what their kernels do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "quench/session.h"

namespace quench {
namespace {

using Numbers = std::vector<float>;

/// -8 to 8, zero and both signs of every size among them.
Numbers samples() {
  Numbers numbers;
  for (int i = -64; i <= 64; ++i) numbers.push_back(static_cast<float>(i) / 8);
  return numbers;
}

Numbers run(const ops::OpInfo& op, const Numbers& x) {
  Model model;
  model.opsets[""] = std::max(op.since, 13);
  Graph& graph = model.graph;
  graph.inputs = {graph.add_value(
      {.name = "x", .type = ValueType::tensor(DType::Float32, std::vector<Dim>{{.value = -1}})})};
  graph.outputs = graph.add_node(std::string(op.name), graph.inputs, {"y"}).outputs;
  const auto count = static_cast<std::int64_t>(x.size());
  return to_float(Session(model, {}, {})
                      .run({{"x", Tensor::of<float>({count}, std::span<const float>(x))}})
                      .at("y"));
}

/// Loops over many numbers and over few round differently.
bool same(float a, float b) {
  if (std::isnan(a) || a == b) return std::isnan(a) == std::isnan(b);
  return std::abs(a - b) <= 1e-6F * std::max(1.0F, std::abs(a));
}

class Functions : public ::testing::TestWithParam<const ops::OpInfo*> {
 protected:
  const ops::OpInfo& op() const { return *GetParam(); }
  bool is(std::uint32_t traits) const { return (op().facts.is & traits) == traits; }
};

TEST_P(Functions, WorkElementByElement) {
  Numbers x = samples();
  const Numbers y = run(op(), x);
  std::ranges::reverse(x);
  Numbers turned = run(op(), x);
  std::ranges::reverse(turned);
  EXPECT_TRUE(std::ranges::equal(y, turned, same));
}

TEST_P(Functions, KeepWhatTheirRowsSay) {
  Numbers x = samples();
  const Numbers y = run(op(), x);
  if (is(ops::kFinite)) {
    for (const float each : run(op(), {-1e30F, -1e-30F, 0, 1e-30F, 1e30F})) {
      EXPECT_TRUE(std::isfinite(each)) << each;
    }
  }
  if (is(ops::kMonotone)) {
    float last = -INFINITY;
    for (const float each : y) {
      if (std::isnan(each)) continue;  // outside of what the function is for
      EXPECT_GE(each, last);
      last = each;
    }
  }
  for (float& each : x) each *= 4;  // exact
  const Numbers scaled = run(op(), x);
  const bool keeps = std::ranges::equal(y, scaled, [](float a, float b) { return 4 * a == b; });
  // Without bounds a Clip hands on everything.
  EXPECT_EQ(keeps, is(ops::kKeepsScale) || op().name == "Clip");
}

std::vector<const ops::OpInfo*> functions() {
  std::vector<const ops::OpInfo*> found;
  for (const ops::OpInfo& op : ops::all_ops()) {
    const bool function = (op.facts.is & ops::kFunction) == ops::kFunction;
    if (op.domain.empty() && function) found.push_back(&op);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(All, Functions, ::testing::ValuesIn(functions()),
                         [](const auto& each) { return std::string(each.param->name); });

TEST(Facts, EpiloguesAndClampsAreFunctionsOfOneNumber) {
  for (const ops::OpInfo& op : ops::all_ops()) {
    if (op.facts.epilogue.name.empty() && op.facts.bounds == nullptr) continue;
    EXPECT_EQ(op.facts.is & ops::kFunction, ops::kFunction) << op.name;
  }
}

TEST(Facts, WeightsHaveTheirChannelsWhereOnnxPutsThem) {
  Graph graph;
  const auto layout = [&](const char* op, std::size_t input, const Shape& shape,
                          std::int64_t groups = 1) {
    Node node;
    node.op_type = op;
    node.set("group", groups);
    return ops::weight_layout(node, input, shape);
  };
  EXPECT_EQ(layout("Conv", 1, {6, 2, 3, 3}, 3)->channels, 6);
  EXPECT_EQ(layout("Conv", 1, {6, 2, 3, 3}, 3)->channel_axis, 0);
  EXPECT_FALSE(layout("Conv", 1, {6, 2, 3, 3}, 4)) << "groups that do not fit";
  EXPECT_EQ(layout("ConvTranspose", 1, {6, 4, 3, 3})->channel_axis, 1);
  EXPECT_EQ(layout("ConvTranspose", 1, {6, 4, 3, 3}, 2)->channels, 8);
  EXPECT_TRUE(layout("ConvTranspose", 1, {6, 4, 3, 3}, 2)->grouped_axis);
  EXPECT_EQ(layout("Gemm", 1, {5, 7})->channels, 7);
  EXPECT_EQ(layout("MatMul", 1, {2, 5, 7})->sum_axis, 1);
  EXPECT_EQ(layout("MatMul", 0, {2, 5, 7})->channel_axis, 1);
  EXPECT_EQ(layout("Gather", 0, {30, 8})->channel_axis, 0);
  EXPECT_EQ(layout("LSTM", 2, {1, 8, 4})->channel_axis, 1);
  EXPECT_FALSE(layout("Conv", 2, {6})) << "a bias";
  EXPECT_FALSE(layout("Relu", 1, {6, 2, 3, 3}));
}

}  // namespace
}  // namespace quench
