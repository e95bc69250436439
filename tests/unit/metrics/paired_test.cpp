// SPDX-License-Identifier: Apache-2.0
// Differences between two models on the same samples, and when they are more than chance.
#include "metrics/paired.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quench::metrics {
namespace {

OutputNoise output(const std::vector<double>& noise) {
  OutputNoise result;
  for (const double each : noise) result.push_back({.signal = 100, .noise = each});
  return result;
}

Difference loss(const OutputNoise& a, const OutputNoise& b) {
  return paired(a.size(), [&](std::size_t skipped) {
    return sqnr_without(b, skipped) - sqnr_without(a, skipped);
  });
}

TEST(Paired, SqnrLeavesOutASample) {
  const OutputNoise some = output({1, 1, 8});
  EXPECT_DOUBLE_EQ(sqnr_without(some, 3), 10 * std::log10(30));
  EXPECT_DOUBLE_EQ(sqnr_without(some, 2), 20);
  EXPECT_DOUBLE_EQ(sqnr_without(output({0, 0}), 2), 200) << "equal";
  EXPECT_DOUBLE_EQ(sqnr_without(output({INFINITY, 0}), 2), -200);
}

TEST(Paired, NearnessIsThatOfPeaksWhereTheyAreWorse) {
  OutputNoise some = output({1, 1});
  EXPECT_DOUBLE_EQ(nearness_without(some, 2), 20) << "no peaks";
  some[0].peak_signal = 10;
  some[0].peak_noise = 1;
  EXPECT_DOUBLE_EQ(nearness_without(some, 2), 10);
  EXPECT_DOUBLE_EQ(nearness_without(some, 0), 20) << "the other sample has none";
}

TEST(Paired, WhatSamplesDisagreeOnIsNotClear) {
  const Difference mixed = loss(output({1, 4, 1, 4, 1, 4, 3, 4}), output({2, 2, 3, 2, 2, 2, 2, 3}));
  EXPECT_GT(mixed.db, 0.5);
  EXPECT_GT(mixed.error, mixed.db);
  const Difference alike = loss(output({2, 4, 6, 2}), output({1, 2, 3, 1}));
  EXPECT_NEAR(alike.db, 3.01, 0.01);
  EXPECT_NEAR(alike.error, 0, 1e-9) << "every sample says the same";
}

TEST(Paired, ARareLossIsAlwaysClear) {
  for (const std::size_t samples : {2U, 16U, 64U}) {
    std::vector<double> rare(samples, 1);
    const OutputNoise whole = output(rare);
    rare[0] = 1000;
    const Difference found = loss(output(rare), whole);
    EXPECT_GT(found.db, 10) << samples;
    EXPECT_LT(found.error, found.db) << samples;
  }
}

TEST(Paired, OneSampleSaysNothingOfChance) {
  EXPECT_DOUBLE_EQ(loss(output({2}), output({1})).error, 0);
}

}  // namespace
}  // namespace quench::metrics
