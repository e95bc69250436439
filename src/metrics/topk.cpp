// SPDX-License-Identifier: Apache-2.0
// Accuracy against labels, for any k.
#include <algorithm>

#include "base/format.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

// The place of `label` when scores are sorted downwards; of equal scores the first class comes
// first, so that an output that is constant does not count as right. NaN anywhere: last place.
std::int64_t place_of(std::span<const double> scores, std::size_t label) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return static_cast<std::int64_t>(scores.size());
    place += scores[i] > scores[label] || (scores[i] == scores[label] && i < label) ? 1 : 0;
  }
  return place;
}

}  // namespace

void TopK::add(const Tensor& actual, const Tensor& labels) {
  const Tensor wide = convert(labels, DType::Int64);
  const Tensor scores = convert(actual, DType::Float64);
  const auto indices = wide.data<std::int64_t>();
  const auto rows = indices.size();
  const bool one = rows == 1 && actual.rank() == 1;
  if (rows == 0 || (!one && num_rows(actual) != static_cast<std::int64_t>(rows))) {
    fail(ErrorKind::BadData, "an output of shape {} does not go with {} labels",
         to_string(actual.shape()), rows);
  }
  const std::size_t classes = static_cast<std::size_t>(actual.size()) / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t label = indices[row];
    if (label < 0 || label >= static_cast<std::int64_t>(classes)) {
      fail(ErrorKind::BadData, "label {} does not exist: the output has {} classes", label,
           classes);
    }
    const auto of_row = scores.data<double>().subspan(row * classes, classes);
    const std::int64_t place = place_of(of_row, static_cast<std::size_t>(label));
    const bool valid = place < static_cast<std::int64_t>(classes);
    right_ += valid && place < k_ ? 1 : 0;
    ++samples_;
  }
}

double TopK::value() const {
  if (samples_ == 0) return kNothing;
  return 100.0 * static_cast<double>(right_) / static_cast<double>(samples_);
}

}  // namespace quench::metrics
