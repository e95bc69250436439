// SPDX-License-Identifier: Apache-2.0
// How many layers lie between a value and an output.
#include "plan/layers_behind.h"

#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Network;

TEST(LayersBehind, CountsLayersOnTheShortestWay) {
  Network net;
  net.conv("x", "a").then("Relu", {"a"}, "b").conv("b", "c").conv("c", "d");
  net.then("Add", {"b", "d"}, "sum").conv("sum", "e").output("e");
  const auto layers = plan::layers_behind(net.graph());
  EXPECT_EQ(layers.at("e"), 0);
  EXPECT_EQ(layers.at("sum"), 1);
  EXPECT_EQ(layers.at("d"), 1);
  EXPECT_EQ(layers.at("c"), 2);
  EXPECT_EQ(layers.at("b"), 1) << "the skip connection hands its errors on";
  EXPECT_EQ(layers.at("x"), 2);
}

TEST(LayersBehind, StepsThatDoNotAddUpCountForNothing) {
  Network net;
  net.conv("x", "a").then("Sigmoid", {"a"}, "b").then("Mul", {"a", "b"}, "c").output("c");
  net.then("GlobalAveragePool", {"a"}, "mean").output("mean");
  const auto layers = plan::layers_behind(net.graph());
  EXPECT_EQ(layers.at("a"), 0);
  EXPECT_EQ(layers.at("x"), 1);
}

TEST(LayersBehind, PoolsAddUpAndWhatLeadsNowhereIsLeftOut) {
  Network net;
  net.conv("x", "a").then("GlobalAveragePool", {"a"}, "mean").output("mean");
  net.conv("a", "unused");
  const auto layers = plan::layers_behind(net.graph());
  EXPECT_EQ(layers.at("mean"), 0);
  EXPECT_EQ(layers.at("a"), 1);
  EXPECT_FALSE(layers.contains("unused"));
}

}  // namespace
}  // namespace quench
