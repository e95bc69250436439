// SPDX-License-Identifier: Apache-2.0
// What launchers' environments say; the program's tests start processes in them.
#include "quench/launched.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "quench/error.h"

namespace quench {
namespace {

using Environment = std::map<std::string, std::string>;

LaunchedRank read(const Environment& environment) {
  return launched_rank([&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

Environment slurm(const std::string& job, const std::string& step) {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_NTASKS", "8"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_JOB_ID", job},
          {"SLURM_STEP_ID", step},
          {"SLURM_NTASKS_PER_NODE", "2"},
          {"SLURM_STEP_NODELIST", "node[03-07,9],other"}};
}

TEST(Launched, SlurmTellsPlaceAndMachine) {
  const LaunchedRank found = read(slurm("77", "0"));
  EXPECT_EQ(found.ranks.rank, 3);
  EXPECT_EQ(found.ranks.size, 8);
  EXPECT_EQ(found.ranks.address, "node03");
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_size, 2);
}

// Two srun in one job, or two jobs on one machine, must not meet at one port.
TEST(Launched, StepsOfSlurmHavePortsOfTheirOwn) {
  std::set<int> ports;
  for (const char* job : {"8388607", "8388608", "8388609"}) {
    for (int step = 0; step < 37; ++step) {
      const int port = read(slurm(job, std::to_string(step))).ranks.port;
      EXPECT_GE(port, 20000);
      EXPECT_LT(port, 40000);
      ports.insert(port);
    }
  }
  EXPECT_EQ(ports.size(), 3U * 37U);
}

// Slurm numbers what is no step of srun from the end of 32 bits.
TEST(Launched, TakesABatchScriptForTheFirstStep) {
  EXPECT_EQ(read(slurm("77", "4294967291")).ranks.port, read(slurm("77", "0")).ranks.port);
}

TEST(Launched, MasterPortGoesFirst) {
  Environment environment = slurm("77", "1");
  environment["MASTER_PORT"] = "1234";
  EXPECT_EQ(read(environment).ranks.port, 1234);
  environment["MASTER_PORT"] = "x";
  EXPECT_THROW(read(environment), Error);
}

TEST(Launched, RefusesAnEnvironmentWithoutALauncher) { EXPECT_THROW(read({}), Error); }

}  // namespace
}  // namespace quench
