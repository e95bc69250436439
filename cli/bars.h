// SPDX-License-Identifier: Apache-2.0
// Quality bars: --at-least top1=70.5.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/evaluate.h"

namespace quench::cli {

/// What scores must reach or stay under, by metric.
struct Bars {
  std::map<std::string, double> at_least;
  std::map<std::string, double> at_most;
};

/// From METRIC=NUMBER items.
std::map<std::string, double> parse_bars(const std::string& flag,
                                         const std::vector<std::string>& items);

/// Holds every output against the bars, says on stderr what was missed, and returns the exit code.
/// A bar on a metric that was not computed is Error(Usage); a score that is not a number misses.
int check_bars(const std::vector<OutputScores>& outputs, const Bars& bars);

}  // namespace quench::cli
