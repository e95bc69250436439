// SPDX-License-Identifier: Apache-2.0
// What several threads saw, as if one had.
#include "calibrate/tally.h"

#include <algorithm>
#include <utility>

namespace quench::calibrate {

void append(Statistic& whole, Statistic part) {
  MovingAverage moved;
  for (const MovingAverage::Entry& entry : part.moving_abs_max.entries()) {
    moved.add({.order = whole.samples + entry.order, .value = entry.value});
  }
  part.moving_abs_max = std::move(moved);
  whole.merge(part);
}

void append(StatisticMap& whole, const StatisticMap& part) {
  for (const auto& [name, statistic] : part) append(whole[name], statistic);
}

Tally::Tally(std::vector<std::string> values, int workers)
    : values_(std::move(values)),
      runs_(values_.size()),
      earlier_(values_.size()),
      partial_(static_cast<std::size_t>(workers), std::vector<Statistic>(values_.size())),
      whole_(values_.size()) {}

void Tally::close_run(std::size_t tap) {
  for (std::vector<Statistic>& each : partial_) {
    if (each[tap].samples > 0) append(earlier_[tap], std::exchange(each[tap], Statistic()));
  }
}

void Tally::add(const TapSample& sample) {
  {
    // A value's samples of one run are all there before the first of the next.
    const std::lock_guard lock(mutex_);
    if (std::exchange(runs_[sample.tap], sample.run) != sample.run) close_run(sample.tap);
  }
  partial_[static_cast<std::size_t>(sample.worker)][sample.tap].add_sample(sample.values);
}

void Tally::add(const TapSummary& summary) {
  partial_[0][summary.tap].add_summaries(summary.samples, summary.bins);
}

void Tally::keep() {
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    close_run(i);
    if (earlier_[i].samples > 0) append(whole_[i], std::move(earlier_[i]));
  }
  discard();
}

void Tally::discard() {
  for (std::vector<Statistic>& each : partial_) {
    for (Statistic& statistic : each) statistic = Statistic();
  }
  for (Statistic& statistic : earlier_) statistic = Statistic();
  std::ranges::fill(runs_, 0);
}

void Tally::merge(const StatisticMap& other) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto found = other.find(values_[i]);
    if (found != other.end()) append(whole_[i], found->second);
  }
}

StatisticMap Tally::statistics() const {
  StatisticMap result;
  for (std::size_t i = 0; i < values_.size(); ++i) result[values_[i]] = whole_[i];
  return result;
}

}  // namespace quench::calibrate
