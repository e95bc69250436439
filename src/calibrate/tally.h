// SPDX-License-Identifier: Apache-2.0
// Joins what a session's threads see of each value into one statistic, in the order of the samples.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "quench/session.h"
#include "quench/statistics.h"

namespace quench::calibrate {

/// `part` saw the samples that follow those of `whole`; its own order began at 0.
void append(Statistic& whole, Statistic part);
void append(StatisticMap& whole, const StatisticMap& part);

/// `add` during a run, or several that go together, from any of the session's threads; then `keep`
/// or, when one failed, `discard`.
class Tally {
 public:
  Tally(std::vector<std::string> values, int workers);
  void add(const TapSample& sample);
  void add(const TapSummary& summary);
  /// The runs count. Workers have samples in the order of their numbers, so that joining after
  /// each run keeps the order of the samples whatever the batch size.
  void keep();
  void discard();
  /// Samples seen elsewhere count as later ones. A value that is not tallied is passed over.
  void merge(const StatisticMap& other);
  StatisticMap statistics() const;
  const std::vector<std::string>& values() const noexcept { return values_; }

 private:
  void close_run(std::size_t tap);

  std::vector<std::string> values_;
  std::mutex mutex_;
  std::vector<std::size_t> runs_;   ///< by value: the run that `partial_` is of
  std::vector<Statistic> earlier_;  ///< by value: the runs before it that do not count yet
  std::vector<std::vector<Statistic>> partial_;  ///< by worker, then by value
  std::vector<Statistic> whole_;
};

}  // namespace quench::calibrate
