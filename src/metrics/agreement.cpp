// SPDX-License-Identifier: Apache-2.0
// How often the model and its reference choose the same class.
#include <algorithm>
#include <optional>

#include "metrics/metric.h"

namespace quench::metrics {
namespace {

// The first of the largest elements; nothing when there is none or a NaN.
template <typename T>
std::optional<std::size_t> choice_of(std::span<const T> scores) {
  if (scores.empty()) return std::nullopt;
  if (std::any_of(scores.begin(), scores.end(), [](T x) { return std::isnan(x); })) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// Rows of length 1 with numbers below zero: directions, of which no element is an answer. (Shares
/// of classes can have that length, but are not negative.)
bool are_unit_vectors(const Tensor& output) {
  constexpr double kNearly = 1e-3;
  bool unit = true;
  bool negative = false;
  for_each_row(output, output, [&](auto row, auto /*same*/) {
    double square = 0;
    for (const auto x : row) {
      square += static_cast<double>(x) * static_cast<double>(x);
      negative = negative || x < 0;
    }
    unit = unit && std::abs(std::sqrt(square) - 1) < kNearly;
  });
  return unit && negative;
}

/// A row of numbers a sample, whatever dimensions of 1 stand around it: the largest is the answer.
bool is_class_scores(const Tensor& output) {
  if (output.rank() < 2 || !info(output.dtype()).is_float) return false;
  const auto long_dims = std::count_if(output.shape().begin() + 1, output.shape().end(),
                                       [](std::int64_t dim) { return dim > 1; });
  return long_dims == 1 && !are_unit_vectors(output);
}

class Agreement final : public ShareOfSame {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    for_each_row(actual, expected, [this](auto a, auto e) {
      const auto choice = choice_of(a);
      count(choice && choice == choice_of(e));
    });
  }
};

}  // namespace

MetricEntry agreement() {
  return {{"agreement", "percent of samples whose largest output is the reference's", false, true,
           Gather::Share},
          []() -> std::unique_ptr<Metric> { return std::make_unique<Agreement>(); },
          is_class_scores};
}

}  // namespace quench::metrics
