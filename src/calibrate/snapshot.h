// SPDX-License-Identifier: Apache-2.0
// What an interrupted pass goes on from: statistics on disk beside the result.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "quench/data.h"
#include "quench/statistics.h"

namespace quench::calibrate {

/// What a snapshot must agree in with the pass that goes on from it, with words for each.
struct PassIdentity {
  std::string model;
  std::string data;
  std::string settings;
};

/// Statistics of the samples before `done`.
class Snapshot {
 public:
  /// `first`: the first sample of the pass.
  Snapshot(std::string path, PassIdentity identity, SampleSource& source, std::int64_t first)
      : path_(std::move(path)), identity_(std::move(identity)), source_(source), first_(first) {}

  /// What was seen before, where there is a snapshot of this very pass; returns the sample to go on
  /// with. One of another pass is an Error(BadData).
  std::int64_t resume(StatisticMap& seen) const;
  void save(std::int64_t done, const StatisticMap& statistics) const;

 private:
  std::string sample_text(std::int64_t index) const;
  [[noreturn]] void refuse(std::string_view what) const;

  std::string path_;
  PassIdentity identity_;
  SampleSource& source_;
  std::int64_t first_;
};

/// Writes a snapshot when the last one is old enough.
class SnapshotKeeper {
 public:
  SnapshotKeeper(const Snapshot& snapshot, double seconds)
      : snapshot_(snapshot), seconds_(seconds) {}
  void after_batch(std::int64_t done, const std::function<StatisticMap()>& statistics);

 private:
  using Clock = std::chrono::steady_clock;
  const Snapshot& snapshot_;
  double seconds_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace quench::calibrate
