// SPDX-License-Identifier: Apache-2.0
// Channels of layers with groups: how many there are, and which of them share a grid.
#include "tune/small_layers.h"

#include "report/advice.h"
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;

/// A ConvTranspose of 8 to 12 channels in four groups, named "up".
Builder grouped() {
  Builder b(13);
  b.input("x", testing::dims({1, 8, 4, 4}));
  b.numbers("w", {8, 3, 2, 2}, std::vector<float>(96, 0.5F));
  Node& node = b.node("ConvTranspose", {"x", "w"}, {"y"});
  node.name = "up";
  node.set("group", std::int64_t{4});
  b.output("y");
  infer_types(b.model);
  return b;
}

bool is_skipped(std::int64_t min_channels) {
  QuantizeOptions options;
  options.min_quant_weight_channel = min_channels;
  return without_small_layers(grouped().graph(), options).by_layer.contains("up");
}

TEST(SmallLayers, CountTheChannelsOfAllGroups) {
  EXPECT_FALSE(is_skipped(7));
  EXPECT_FALSE(is_skipped(11));
  EXPECT_TRUE(is_skipped(12));
}

TEST(SharedGrids, OfGroupedConvTransposeAreToldOf) {
  QuantConfig config;
  config.target = "generic";
  const Builder b = grouped();
  QuantizeReport report;
  warn_of_shared_scales(b.model, make_plan(b.model, config), report);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("up"), std::string::npos) << report.warnings[0];
}

}  // namespace
}  // namespace quench
