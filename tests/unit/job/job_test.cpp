// SPDX-License-Identifier: Apache-2.0
// One job for all types of quantisation.
#include "job/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "unit/plan/networks.h"

namespace quench {
namespace {

TEST(Job, OneModelHoldsAllThreeTypes) {
  testing::Network net;
  net.conv("x", "y").then("Relu", {"y"}, "r").conv("r", "a").conv("a", "out").output("out");
  const std::string path =
      (std::filesystem::temp_directory_path() / "quench_job_mixed.onnx").string();
  save(net.model, path);
  QuantizeOptions options;
  options.config.by_layer["conv_a"].type = QuantType::Weight;
  job::Job job(path, options, {});
  job::prepare(job);
  job::plan(job);
  ASSERT_EQ(job.stored.size(), 1U);
  EXPECT_EQ(job.stored[0].name, "a_w");
  const auto counted = [&](NodePlan::Kind kind) {
    return std::ranges::count(job.plan.nodes, kind, &NodePlan::kind);
  };
  EXPECT_GE(counted(NodePlan::Kind::Integer), 2);
}

}  // namespace
}  // namespace quench
