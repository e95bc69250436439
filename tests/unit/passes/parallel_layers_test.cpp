// SPDX-License-Identifier: Apache-2.0
// Which layers of a graph are split over processes.
#include "passes/parallel_layers.h"

#include "unit/passes/builder.h"

namespace quench {
namespace {

using passes::kColumnParallel;
using passes::kRowParallel;
using passes::ParallelLayers;
using testing::Builder;

struct Network : Builder {
  Network() : Builder(13) {
    model.opsets["com.microsoft"] = 1;
    input("x", {{-1, "n"}, {8, ""}});
  }
  void linear(const std::string& from, const std::string& to, std::int64_t in, std::int64_t out) {
    constant(to + "_w", Tensor::zeros(DType::Float32, {in, out}));
    node("MatMul", {from, to + "_w"}, {to});
  }
  void join(const std::string& op, const std::string& from, const std::string& to) {
    node(op, {from}, {to}).domain = "com.microsoft";
  }
  std::string kind(const std::string& layer) {
    const Uses uses(graph());
    const NodeId maker = uses.producer[static_cast<std::size_t>(id(layer))];
    return ParallelLayers(graph()).kind(graph().nodes[static_cast<std::size_t>(maker)]);
  }
};

TEST(ParallelLayers, PerceptronOfColumnsThenRows) {
  Network net;
  net.linear("x", "plain", 8, 8);
  net.linear("plain", "up", 8, 4);
  net.node("Relu", {"up"}, {"active"});
  net.linear("active", "part", 4, 8);
  net.join("AllReduce", "part", "sum");
  net.constant("bias", Tensor::zeros(DType::Float32, {8}));
  net.node("Add", {"sum", "bias"}, {"y"});
  net.linear("y", "last", 8, 8);
  net.output("last");
  EXPECT_EQ(net.kind("plain"), "");
  EXPECT_EQ(net.kind("up"), kColumnParallel);
  EXPECT_EQ(net.kind("part"), kRowParallel);
  EXPECT_EQ(net.kind("last"), "");
  const ParallelLayers layers(net.graph());
  EXPECT_EQ(layers.split_values(), (std::set<std::string>{"up", "active"}));
  EXPECT_EQ(layers.split_axis(net.graph().nodes[1], {8, 4}), 1);
  EXPECT_EQ(layers.split_axis(net.graph().nodes[3], {4, 8}), 0);
}

TEST(ParallelLayers, GatheredColumnsAndWhatIsBesideThem) {
  Network net;
  net.linear("x", "gate", 8, 1);
  net.node("Sigmoid", {"gate"}, {"share"});
  net.linear("x", "columns", 8, 4);
  net.node("Mul", {"columns", "share"}, {"scaled"});
  net.join("AllGather", "scaled", "y");
  net.output("y");
  EXPECT_EQ(net.kind("columns"), kColumnParallel);
  // It cannot be told from the graph that the gate is whole; ranks compare their weights.
  EXPECT_TRUE(ParallelLayers(net.graph()).split_values().contains("scaled"));
  EXPECT_FALSE(ParallelLayers(net.graph()).split_values().contains("y"));
}

TEST(ParallelLayers, TwoBranchesThatOneSumJoins) {
  Network net;
  net.linear("x", "a", 8, 8);
  net.linear("x", "b", 8, 8);
  net.node("Add", {"a", "b"}, {"both"});
  net.join("AllReduce", "both", "y");
  net.output("y");
  EXPECT_EQ(net.kind("a"), kRowParallel);
  EXPECT_EQ(net.kind("b"), kRowParallel);
}

TEST(ParallelLayers, WhatScalesASumIsNoPartOfIt) {
  Network net;
  net.linear("x", "gate", 8, 1);
  net.linear("x", "part", 8, 8);
  net.node("Mul", {"part", "gate"}, {"scaled"});
  net.join("AllReduce", "scaled", "y");
  net.output("y");
  EXPECT_EQ(net.kind("gate"), "");
  EXPECT_EQ(net.kind("part"), "");
}

TEST(ParallelLayers, NoneInAWholeModel) {
  Network net;
  net.linear("x", "y", 8, 8);
  net.output("y");
  EXPECT_TRUE(ParallelLayers(net.graph()).empty());
  EXPECT_TRUE(ParallelLayers(net.graph()).split_values().empty());
}

}  // namespace
}  // namespace quench
