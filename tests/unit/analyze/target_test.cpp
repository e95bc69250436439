// SPDX-License-Identifier: Apache-2.0
// The search for the most quantised model: what it finds, and how often it asks.
#include "analyze/target.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quench::analyze {
namespace {

constexpr std::size_t kLayers = 50;
constexpr double kFloat = 90;

std::vector<RankedLayer> layers() {
  std::vector<RankedLayer> result;
  for (std::size_t i = 0; i < kLayers; ++i) {
    result.push_back({.name = "layer" + std::to_string(i), .noise = std::pow(0.9, i)});
  }
  return result;
}

/// What a choice loses: the noise of its quantised layers, to some power.
double value_of(const Choice& choice, double power) {
  double noise = 0;
  for (const RankedLayer& layer : layers()) {
    if (!choice.in_float.contains(layer.name)) noise += layer.noise;
  }
  return kFloat - 3 * std::pow(noise, power);
}

TargetSearch search_for(double at_least, double power, bool one_by_one = false) {
  const EvaluateChoice judge = [=](const Choice& choice, Effort) {
    const double value = value_of(choice, power);
    return Verdict{.meets = value >= at_least, .value = value};
  };
  const Ladder ladder(layers(), 0);
  const TargetGoal goal{
      .at_least = at_least, .float_value = kFloat, .quantized_value = value_of({}, power)};
  return one_by_one ? search_one_by_one(ladder, judge) : search(ladder, goal, judge);
}

TEST(TargetSearch, NeverLeavesMoreInFloatThanOneByOneInHalfThePasses) {
  for (const double power : {0.7, 1.0, 1.4}) {
    for (const double share : {0.3, 0.1, 0.03}) {
      const double at_least = kFloat - share * (kFloat - value_of({}, power));
      const TargetSearch plain = search_for(at_least, power, true);
      const TargetSearch found = search_for(at_least, power);
      ASSERT_TRUE(plain.met);
      ASSERT_TRUE(found.met);
      EXPECT_GE(found.value, at_least);
      EXPECT_DOUBLE_EQ(plain.passes, static_cast<double>(plain.choice.in_float.size()));
      EXPECT_LE(found.choice.in_float.size(), plain.choice.in_float.size())
          << "power " << power << " share " << share;
      EXPECT_LE(2 * found.passes, plain.passes) << "power " << power << " share " << share;
    }
  }
}

TEST(TargetSearch, TellsTheBestOfWhatCannotBeMet) {
  const EvaluateChoice judge = [](const Choice& choice, Effort) {
    return Verdict{.value = static_cast<double>(choice.in_float.size())};
  };
  const TargetGoal goal{.at_least = 100, .float_value = 120};
  const TargetSearch found = search(Ladder(layers(), 0), goal, judge);
  EXPECT_FALSE(found.met);
  EXPECT_EQ(found.value, static_cast<double>(kLayers));
}

TEST(TargetSearch, GuessesAreChecked) {
  // Glances say that every step will do; all samples say that only the last ten will.
  const EvaluateChoice judge = [](const Choice& choice, Effort effort) {
    const bool good = choice.in_float.size() >= kLayers - 10;
    if (effort == Effort::All) return Verdict{.meets = good, .value = good ? 90.0 : 10.0};
    return Verdict{.meets = true, .value = 90, .passes = 0.1, .whole = false};
  };
  const TargetGoal goal{.at_least = 80, .float_value = kFloat, .quantized_value = 10};
  const TargetSearch found = search(Ladder(layers(), 0), goal, judge);
  EXPECT_TRUE(found.met);
  EXPECT_EQ(found.choice.in_float.size(), kLayers - 10);
}

TEST(TargetSearch, RaisesBitsBeforeItLeavesLayersInFloat) {
  const EvaluateChoice judge = [](const Choice& choice, Effort) {
    const double value = static_cast<double>(choice.weight_bits.size());
    return Verdict{.meets = value >= 7, .value = value};
  };
  const TargetGoal goal{.at_least = 7, .float_value = 50, .quantized_value = 0};
  const TargetSearch found = search(Ladder(layers(), 8), goal, judge);
  EXPECT_TRUE(found.met);
  EXPECT_TRUE(found.choice.in_float.empty());
  EXPECT_GE(found.choice.weight_bits.size(), 7U);
}

}  // namespace
}  // namespace quench::analyze
