// SPDX-License-Identifier: Apache-2.0
// The list of metrics, and what they share.
#include <string>
#include <vector>

#include "base/format.h"
#include "base/nearest.h"
#include "metrics/boxes.h"
#include "metrics/metric.h"

namespace quench {
namespace metrics {
namespace {

const std::vector<MetricEntry>& entries() {
  static const std::vector<MetricEntry> list = {
#define QUENCH_METRIC(name) name(),
#include "metrics/metrics.inc"
#undef QUENCH_METRIC
  };
  return list;
}

}  // namespace

bool is_comparable(const Tensor& output) { return output.rank() != 2 || !holds_boxes(output); }

void expect_same_size(const Tensor& actual, const Tensor& expected) {
  if (actual.size() == expected.size() && num_rows(actual) == num_rows(expected)) return;
  fail(ErrorKind::BadData, "cannot compare an output of shape {} with a reference of shape {}",
       to_string(actual.shape()), to_string(expected.shape()));
}

const MetricEntry& find_entry(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& entry : entries()) {
    if (entry.info.name == name) return entry;
    names.emplace_back(entry.info.name);
  }
  fail(ErrorKind::Usage, "there is no metric '{}'{}; there are {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

std::vector<std::string> fitting_metrics(const Tensor& output) {
  std::vector<std::string> names;
  for (const MetricEntry& entry : entries()) {
    if (entry.fits != nullptr && entry.fits(output)) names.emplace_back(entry.info.name);
  }
  return names;
}

std::vector<std::string> metrics_for(TruthKind kind) {
  std::vector<std::string> names;
  for (const MetricEntry& entry : entries()) {
    if (entry.info.truth == kind) names.emplace_back(entry.info.name);
  }
  return names;
}

std::vector<Truth> truths_of(const Truths& truths, const Tensor& labels, const Tensor& actual,
                             std::int64_t images) {
  const Tensor places = convert(labels, DType::Int64);
  if (places.size() != images) {
    fail(ErrorKind::BadData,
         "an output of shape {} holds {} images, and there are labels for {}; run one at a time "
         "(--batch 1)",
         to_string(actual.shape()), images, places.size());
  }
  std::vector<Truth> all;
  for (const std::int64_t place : places.data<std::int64_t>()) all.push_back(truths.read(place));
  return all;
}

std::int64_t num_rows(const Tensor& tensor) {
  return tensor.rank() == 0 ? 1 : tensor.shape().front();
}

}  // namespace metrics

std::span<const MetricInfo> all_metrics() noexcept {
  static const std::vector<MetricInfo> infos = [] {
    std::vector<MetricInfo> list;
    for (const auto& entry : metrics::entries()) list.push_back(entry.info);
    return list;
  }();
  return infos;
}

const MetricInfo& find_metric(std::string_view name) { return metrics::find_entry(name).info; }
std::unique_ptr<Metric> make_metric(std::string_view name) {
  return metrics::find_entry(name).make();
}
std::unique_ptr<Metric> make_metric(std::string_view name, std::shared_ptr<const Truths> truths) {
  const metrics::MetricEntry& entry = metrics::find_entry(name);
  if (entry.against == nullptr || entry.info.truth != truths->kind()) {
    fail(ErrorKind::Usage, "the metric '{}' cannot be held against {}, which {} holds", name,
         to_string(truths->kind()), truths->path());
  }
  return entry.against(std::move(truths));
}

}  // namespace quench
