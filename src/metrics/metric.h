// SPDX-License-Identifier: Apache-2.0
// What a metric's file gives to the list, and what metrics share.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "metrics/length.h"
#include "quench/metrics.h"

namespace quench::metrics {

/// A row of the list of metrics.
struct MetricEntry {
  MetricInfo info;
  std::unique_ptr<Metric> (*make)();
  /// Whether it is worth showing for an output that looks like this, without being asked for; null:
  /// never.
  bool (*fits)(const Tensor& output) = nullptr;
  /// The same against labels of the kind that `info.truth` names; null: it cannot.
  std::unique_ptr<Metric> (*against)(std::shared_ptr<const Truths> truths) = nullptr;
  bool whole = false;  ///< of all samples together: the mean over single ones is something else
};

#define QUENCH_METRIC(name) MetricEntry name();
#include "metrics/metrics.inc"
#undef QUENCH_METRIC

/// The row of a metric. Throws Error(Usage) with the nearest name when there is none.
const MetricEntry& find_entry(std::string_view name);
/// The metrics against a reference that fit an output, told by its shape and what is in it.
std::vector<std::string> fitting_metrics(const Tensor& output);
/// The metrics that can be held against such labels.
std::vector<std::string> metrics_for(TruthKind kind);

/// The truths of the samples whose labels these are; throws Error(BadData) where their number is
/// not that of the images in an output of this shape.
std::vector<Truth> truths_of(const Truths& truths, const Tensor& labels, const Tensor& actual,
                             std::int64_t images);

/// The value of a metric that has seen nothing.
inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether both are NaN or the same infinity: what the reference has, too, is no error.
template <typename T>
bool equally_special(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

/// Whether element by element means something: not of a list of boxes, whose number varies.
bool is_comparable(const Tensor& output);

/// Throws Error(BadData) unless both have the same number of elements.
void expect_same_size(const Tensor& actual, const Tensor& expected);
/// Samples in a tensor: its first dimension, or 1 for a scalar.
std::int64_t num_rows(const Tensor& tensor);

/// Calls `body(actual, expected)` with spans of one floating-point type.
template <typename Body>
void with_elements(const Tensor& got, const Tensor& expected, const Body& body) {
  const Tensor actual = at_length_of(got, expected);
  expect_same_size(actual, expected);
  if (actual.dtype() == DType::Float32 && expected.dtype() == DType::Float32) {
    body(actual.data<float>(), expected.data<float>());
    return;
  }
  const Tensor a = convert(actual, DType::Float64);
  const Tensor e = convert(expected, DType::Float64);
  body(a.data<double>(), e.data<double>());
}

/// Calls `body(actual_row, expected_row)` for every sample.
template <typename Body>
void for_each_row(const Tensor& actual, const Tensor& expected, const Body& body) {
  with_elements(actual, expected, [&](auto a, auto e) {
    const auto rows = static_cast<std::size_t>(num_rows(actual));
    const std::size_t width = rows == 0 ? 0 : a.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      body(a.subspan(row * width, width), e.subspan(row * width, width));
    }
  });
}

/// Share of samples, in percent, whose label is among the `k` largest outputs.
class TopK final : public Metric {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}
  void add(const Tensor& actual, const Tensor& labels) override;
  double value() const override;

 private:
  std::int64_t k_;
  std::int64_t right_ = 0;
  std::int64_t samples_ = 0;
};

/// A metric's `against`: its class takes what it is held against.
template <typename M>
std::unique_ptr<Metric> against_truths(std::shared_ptr<const Truths> truths) {
  return std::make_unique<M>(std::move(truths));
}

/// The percent of samples that come out as the reference's.
class ShareOfSame : public Metric {
 public:
  double value() const override {
    if (samples_ == 0) return kNothing;
    return 100.0 * static_cast<double>(same_) / static_cast<double>(samples_);
  }

 protected:
  void count(bool same) {
    same_ += same ? 1 : 0;
    ++samples_;
  }

 private:
  std::int64_t same_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace quench::metrics
