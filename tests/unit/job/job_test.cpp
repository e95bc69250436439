// SPDX-License-Identifier: Apache-2.0
// One job for all types of quantisation.
#include "job/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/temp_folder.h"
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::TempFolder;

TEST(Job, OneModelHoldsAllThreeTypes) {
  testing::Network net;
  net.conv("x", "y").then("Relu", {"y"}, "r").conv("r", "a").conv("a", "out").output("out");
  const TempFolder folder;
  const std::string path = folder.path("model.onnx");
  save(net.model, path);
  QuantizeOptions options;
  options.config.by_layer["conv_a"].type = QuantType::Weight;
  job::Job job(path, options, {});
  job::prepare(job);
  job::plan(job);
  ASSERT_EQ(job.stored.size(), 1U);
  EXPECT_EQ(job.stored[0].name, "a_w");
  const auto counted = [&](NodePlan::Kind kind) {
    return std::ranges::count_if(job.plan.nodes,
                                 [&](const auto& each) { return each.second.kind == kind; });
  };
  EXPECT_GE(counted(NodePlan::Kind::Integer), 2);
}

TEST(Job, ARefusalCountsTheReasonsThatItLeavesOut) {
  constexpr auto kFloat = std::to_array<const char*>(
      {"Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Sin", "Cos", "Tan"});
  testing::Network net;
  std::string last = "x";
  for (const char* op : kFloat) {
    net.then(op, {last}, std::string("made_") + op);
    last = net.graph().nodes.back().name;
  }
  net.output(last);
  const TempFolder folder;
  save(net.model, folder.path("model.onnx"));
  job::Job job(folder.path("model.onnx"), {}, {});
  job::prepare(job);
  const auto [kind, text] = testing::error_of([&] { job::plan(job); });
  EXPECT_EQ(kind, ErrorKind::Unsupported);
  EXPECT_TRUE(text.ends_with("and 1 more reason")) << text;
}

TEST(Job, AStoredWeightIsFoundBehindAValueThatKeptItsName) {
  testing::Network net;
  net.conv("x", "a").conv("a", "out").output("a").output("out");
  for (Node& node : net.graph().nodes) node.name.clear();
  const TempFolder folder;
  const std::string path = folder.path("model.onnx");
  save(net.model, path);
  QuantizeOptions options;
  options.config.by_layer["a"].type = QuantType::Weight;
  job::Job job(path, options, {});
  job::prepare(job);
  job::plan(job);
  job.solution = net.solve(job.plan);
  job::lower(job);
  const Graph& graph = job.written.graph;
  ASSERT_EQ(node_called(graph, "a").op_type, "DequantizeLinear");
  const Node& layer = node_called(graph, "a_float");
  ASSERT_EQ(layer.op_type, "Conv");
  const Node& weight = node_called(graph, graph[layer.inputs[1]].name);
  EXPECT_EQ(graph[weight.inputs[0]].name, "a_w_quantized");
  ASSERT_EQ(job.report.weights.size(), 1U);
  EXPECT_EQ(job.report.weights[0].weight, "a_w");
}

TEST(Job, EqualisesAroundATransposedDepthwiseConvolution) {
  testing::Network net;
  net.numbers("a_w", {2, 2, 1, 1}, {8, -4, 0.008F, 0.004F});
  net.then("Conv", {"x", "a_w"}, "a");
  net.numbers("t_w", {2, 1, 1, 1}, {1, -1});
  net.node("ConvTranspose", {"a", "t_w"}, {"t"}).set("group", std::int64_t{2});
  net.numbers("out_w", {2, 2, 1, 1}, {0.1F, 100, -0.2F, 150});
  net.then("Conv", {"t", "out_w"}, "out").output("out");
  const TempFolder folder;
  const std::string path = folder.path("model.onnx");
  save(net.model, path);
  std::vector<float> values(std::size_t{20} * 32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  QuantizeOptions options;
  options.config.target = "generic";
  options.data.path = folder.path("samples.npy");
  write_npy(Tensor::of<float>({20, 2, 4, 4}, std::span<const float>(values)), options.data.path);
  job::Job job(path, options, {});
  job::prepare(job);
  job::plan(job);
  job::calibrate_and_tune(job);
  EXPECT_GT(job.report.equalized_groups, 0U) << "weights have a scale per channel";
}

}  // namespace
}  // namespace quench
