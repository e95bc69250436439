// SPDX-License-Identifier: Apache-2.0
// Scores of single samples.
#include "evaluate/sample_metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "metrics/metric.h"

namespace quench::evaluation {
namespace {

/// Adds the squares of the expected values and of the differences.
void add_noise(const Tensor& actual, const Tensor& expected, SampleScore& score) {
  metrics::with_elements(actual, expected, [&](auto a, auto e) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto wanted = static_cast<double>(e[i]);
      const double error = static_cast<double>(a[i]) - wanted;
      if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) {
        score.signal += std::isfinite(wanted) ? wanted * wanted : 0;
        continue;
      }
      score.signal += wanted * wanted;
      score.noise += error * error;
    }
  });
}

double ratio_db(double signal, double noise) {
  if (!std::isfinite(noise) || !std::isfinite(signal)) {
    return -std::numeric_limits<double>::infinity();
  }
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

}  // namespace

SampleMetric::SampleMetric(const std::string& metric, std::vector<std::string> outputs,
                           std::shared_ptr<const Truths> truths)
    : info_(find_metric(metric)), outputs_(std::move(outputs)) {
  if (truths != nullptr && info_.truth == truths->kind()) truths_ = std::move(truths);
  if (outputs_.empty()) fail(ErrorKind::BadModel, "the model has no float output to score");
  if (info_.needs_labels || truths_) outputs_.resize(1);
  if (metrics::find_entry(metric).whole) {
    fail(
        ErrorKind::Usage,
        "the metric '{}' is of all samples together, and analysis looks at single ones; give it as "
        "a command (--metric-command) or an eval_function",
        metric);
  }
}

SampleScore SampleMetric::score(const EvalBatch& batch, std::int64_t index, const TensorMap& actual,
                                const TensorMap& expected) const {
  SampleScore result;
  for (const std::string& output : outputs_) {
    const Tensor got = row_of(actual.at(output), index, batch.rows);
    const Tensor want = row_of(expected.at(output), index, batch.rows);
    add_noise(got, want, result);
    const std::unique_ptr<Metric> metric =
        truths_ ? make_metric(info_.name, truths_) : make_metric(info_.name);
    if (info_.needs_labels || truths_) {
      const std::int64_t label = batch.labels[static_cast<std::size_t>(index)];
      if (label < 0) fail(ErrorKind::BadData, "a sample of the evaluation data has no label");
      metric->add(got, Tensor::of<std::int64_t>({1}, {label}));
    } else {
      metric->add(got, want);
    }
    result.metric += metric->value() / static_cast<double>(outputs_.size());
  }
  return result;
}

void SampleMetric::add(const EvalBatch& batch, const TensorMap& actual, const TensorMap& expected,
                       std::vector<SampleScore>& scores) const {
  for (std::int64_t i = 0; i < batch.samples; ++i) {
    scores.push_back(score(batch, i, actual, expected));
  }
}

double SampleMetric::value(const std::vector<SampleScore>& scores) const {
  if (scores.empty()) return std::numeric_limits<double>::quiet_NaN();
  switch (info_.gather) {
    case Gather::Power:
      return sqnr_of(scores);
    case Gather::Max:
      return std::ranges::max(scores, {}, &SampleScore::metric).metric;
    case Gather::Mean:
    case Gather::Share:
      break;
  }
  double sum = 0;
  for (const SampleScore& each : scores) sum += each.metric;
  return sum / static_cast<double>(scores.size());
}

double sqnr_of(const std::vector<SampleScore>& scores) {
  double signal = 0;
  double noise = 0;
  for (const SampleScore& each : scores) {
    signal += each.signal;
    noise += each.noise;
  }
  return ratio_db(signal, noise);
}

bool SampleMetric::worse(double a, double a_sqnr, double b, double b_sqnr) const {
  // Not a number is the worst there is.
  if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
  if (a != b && !std::isnan(a)) return info_.higher_is_better ? a < b : a > b;
  return a_sqnr < b_sqnr;
}

}  // namespace quench::evaluation
