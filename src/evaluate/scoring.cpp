// SPDX-License-Identifier: Apache-2.0
// Metrics collected for several outputs at once.
#include "evaluate/scoring.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/nearest.h"
#include "evaluate/random_inputs.h"
#include "metrics/metric.h"

namespace quench {

ScoreCard::ScoreCard(std::string output, const std::vector<std::string>& metrics,
                     const CustomMetrics& custom, std::shared_ptr<const Truths> truths)
    : output_(std::move(output)) {
  for (const std::string& name : metrics) {
    metrics_[name] = truths ? make_metric(name, truths) : make_metric(name);
  }
  for (const CustomMetric& metric : custom) metrics_[metric.name] = make_metric(metric);
}

ScoreCard ScoreCard::fitting(std::string output) {
  ScoreCard card(std::move(output), {});
  card.fitting_ = true;
  return card;
}

void ScoreCard::add(const Tensor& actual, const Tensor& expected) {
  if (std::exchange(fitting_, false)) {
    for (const std::string& name : metrics::fitting_metrics(expected)) {
      metrics_[name] = make_metric(name);
    }
  }
  try {
    for (auto& [name, metric] : metrics_) metric->add(actual, expected);
  } catch (Error& error) {
    throw error.in(format("output '{}'", output_));
  }
}

OutputScores ScoreCard::scores() const {
  OutputScores result{.output = output_, .scores = {}};
  for (const auto& [name, metric] : metrics_) result.scores[name] = metric->value();
  return result;
}

MetricChoice sort_metrics(const std::vector<std::string>& names, const CustomMetrics& custom,
                          const Truths* truths) {
  MetricChoice choice;
  for (const std::string& name : names) {
    const MetricInfo& info = find_metric(name);
    const bool labelled = info.needs_labels || (truths != nullptr && info.truth == truths->kind());
    (labelled ? choice.with_labels : choice.with_reference).push_back(name);
  }
  for (const CustomMetric& metric : custom) {
    (metric.needs_labels ? choice.custom_with_labels : choice.custom_with_reference)
        .push_back(metric);
  }
  return choice;
}

std::vector<OutputPair> pair_outputs(const std::vector<Value>& actual,
                                     const std::vector<Value>& expected, const std::string& only) {
  std::vector<OutputPair> pairs;
  const std::vector<std::string> theirs = names_of(expected);
  for (const Value& value : actual) {
    if (std::find(theirs.begin(), theirs.end(), value.name) != theirs.end()) {
      pairs.push_back({value.name, value.name});
    }
  }
  if (pairs.empty() && actual.size() == theirs.size()) {
    for (std::size_t i = 0; i < theirs.size(); ++i) pairs.push_back({actual[i].name, theirs[i]});
  }
  if (pairs.empty()) {
    fail(ErrorKind::BadData, "the models have no output in common: {} and {}",
         fmt::join(names_of(actual), ", "), fmt::join(theirs, ", "));
  }
  if (only.empty()) return pairs;
  std::erase_if(pairs, [&](const OutputPair& pair) { return pair.actual != only; });
  if (pairs.empty()) {
    const std::vector<std::string> names = names_of(actual);
    fail(ErrorKind::BadData, "both models need an output '{}'; the first has {}{}", only,
         fmt::join(names, ", "), did_you_mean(only, names));
  }
  return pairs;
}

}  // namespace quench
