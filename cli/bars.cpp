// SPDX-License-Identifier: Apache-2.0
// Quality bars: --at-least top1=70.5.
#include "cli/bars.h"

#include <fmt/format.h>

#include "cli/errors.h"
#include "cli/parse.h"

namespace quench::cli {
namespace {

bool check_one(const std::vector<OutputScores>& outputs, const std::string& metric, double bar,
               bool at_least) {
  bool found = false;
  bool met = true;
  for (const OutputScores& output : outputs) {
    const auto score = output.scores.find(metric);
    if (score == output.scores.end()) continue;
    found = true;
    // Written so that NaN misses.
    if (at_least ? score->second >= bar : score->second <= bar) continue;
    met = false;
    const std::string line =
        fmt::format("quench: bar missed: {} of '{}' is {:.6g}, the bar is {} {:.6g}\n", metric,
                    output.output, score->second, at_least ? "at least" : "at most", bar);
    std::fputs(printable(line).c_str(), stderr);
  }
  if (!found) {
    throw Error(ErrorKind::Usage,
                fmt::format("there is a bar on '{}', but that metric was not computed: add it "
                            "with --metric",
                            metric));
  }
  return met;
}

}  // namespace

std::map<std::string, double> parse_bars(const std::string& flag,
                                         const std::vector<std::string>& items) {
  std::map<std::string, double> bars;
  for (const std::string& item : items) {
    const auto [metric, number] = parse_pair(flag, item);
    bars[metric] = parse_number(flag, number);
  }
  return bars;
}

int check_bars(const std::vector<OutputScores>& outputs, const Bars& bars) {
  bool met = true;
  for (const auto& [metric, bar] : bars.at_least) met &= check_one(outputs, metric, bar, true);
  for (const auto& [metric, bar] : bars.at_most) met &= check_one(outputs, metric, bar, false);
  return met ? kOk : kBarMissed;
}

}  // namespace quench::cli
