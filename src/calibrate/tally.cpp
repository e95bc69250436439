// SPDX-License-Identifier: Apache-2.0
// What several threads saw, as if one had.
#include "calibrate/tally.h"

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
      partial_(static_cast<std::size_t>(workers), std::vector<Statistic>(values_.size())),
      whole_(values_.size()) {}

void Tally::add(const TapSample& sample) {
  partial_[static_cast<std::size_t>(sample.worker)][sample.tap].add_sample(sample.values);
}

void Tally::add(const TapSummary& summary) {
  partial_[0][summary.tap].add_summaries(summary.samples, summary.bins);
}

void Tally::keep() {
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    for (std::vector<Statistic>& each : partial_) {
      if (each[i].samples > 0) append(whole_[i], std::move(each[i]));
    }
  }
  discard();
}

void Tally::discard() {
  for (std::vector<Statistic>& each : partial_) {
    for (Statistic& statistic : each) statistic = Statistic();
  }
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
