// SPDX-License-Identifier: Apache-2.0
// Text recognition: how many texts, read off by the best class of each step, are the reference's.
#include <algorithm>

#include "base/format.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

constexpr std::size_t kBlank = 0;  ///< as Paddle, torch and CTC's own paper number it
constexpr double kSumOfShares = 1e-2;

/// [N, steps, classes] whose steps are shares of classes: text, and not features.
bool fits(const Tensor& output) {
  const Shape& shape = output.shape();
  if (shape.size() != 3 || shape[2] < 3 || shape[1] < 2 || !info(output.dtype()).is_float) {
    return false;
  }
  const std::vector<float> values = to_float(output);
  const auto classes = static_cast<std::size_t>(shape[2]);
  for (std::size_t at = 0; at + classes <= values.size(); at += classes) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      if (values[at + c] < 0) return false;
      sum += values[at + c];
    }
    if (!(std::abs(sum - 1) < kSumOfShares)) return false;
  }
  return true;
}

/// The best class of each step, without repetitions, then without blanks.
template <typename T>
std::vector<std::size_t> read_off(std::span<const T> scores, std::size_t classes) {
  std::vector<std::size_t> text;
  std::size_t before = kBlank;
  for (std::size_t at = 0; at + classes <= scores.size(); at += classes) {
    const auto step = scores.subspan(at, classes);
    const auto best = static_cast<std::size_t>(std::ranges::max_element(step) - step.begin());
    if (best != before && best != kBlank) text.push_back(best);
    before = best;
  }
  return text;
}

class Ctc final : public ShareOfSame {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    const Shape& shape = expected.shape();
    if (shape.size() != 3 || shape[2] < 2) {
      fail(ErrorKind::BadData, "ctc takes scores of steps, [N,steps,classes]; the output is {}",
           to_string(shape));
    }
    const auto classes = static_cast<std::size_t>(shape[2]);
    for_each_row(actual, expected,
                 [&](auto a, auto e) { count(read_off(a, classes) == read_off(e, classes)); });
  }
};

}  // namespace

MetricEntry ctc() {
  return {
      .info = {"ctc",
               "text recognition: percent of texts, read off greedily, that are the reference's",
               false, true, Gather::Share},
      .make = []() -> std::unique_ptr<Metric> { return std::make_unique<Ctc>(); },
      .fits = fits};
}

}  // namespace quench::metrics
