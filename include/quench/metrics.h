// SPDX-License-Identifier: Apache-2.0
// Numbers that say how good or how alike tensors are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quench/tensor.h"
#include "quench/truth.h"

namespace quench {

/// How the values of single samples make the value of all.
enum class Gather {
  Mean,
  Share,  ///< a mean of 0 and 100: percent of samples
  Max,
  Power,  ///< the ratio of all signal to all noise, in dB
};

/// A metric of the list that `quench list metrics` shows.
struct MetricInfo {
  std::string_view name;
  std::string_view summary;
  bool needs_labels;
  bool higher_is_better;
  Gather gather = Gather::Mean;
  std::optional<TruthKind> truth = std::nullopt;  ///< labels that it can be held against, too
};
std::span<const MetricInfo> all_metrics() noexcept;
/// Throws Error(Usage) with the nearest name when there is no such metric.
const MetricInfo& find_metric(std::string_view name);

/// Collects a metric over batches. Made by `make_metric`.
class Metric {
 public:
  virtual ~Metric() = default;
  /// `actual` is the output under test; `expected` is the reference's output, or the labels
  /// (int64).
  virtual void add(const Tensor& actual, const Tensor& expected) = 0;
  virtual double value() const = 0;
};
/// Throws Error(Usage) with the nearest name when there is no such metric.
std::unique_ptr<Metric> make_metric(std::string_view name);
/// The same against `truths`, which are not null: `expected` are then the samples' labels. Throws
/// Error(Usage) where the metric cannot be held against those.
std::unique_ptr<Metric> make_metric(std::string_view name, std::shared_ptr<const Truths> truths);

/// A metric of the caller's own. It is called with all that was seen of an output at once, as one
/// tensor, and the labels or the reference's output likewise. A result that is no number is an
/// Error(BadData).
struct CustomMetric {
  std::string name;
  std::function<double(const Tensor& actual, const Tensor& expected)> value;
  bool needs_labels = false;
};
using CustomMetrics = std::vector<CustomMetric>;
std::unique_ptr<Metric> make_metric(const CustomMetric& metric);

}  // namespace quench
