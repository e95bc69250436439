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
  explicit Ctc(std::shared_ptr<const Truths> truths = nullptr) : truths_(std::move(truths)) {}
  void add(const Tensor& actual, const Tensor& expected) override {
    const Shape& shape = actual.shape();
    if (shape.size() != 3 || shape[2] < 2) {
      fail(ErrorKind::BadData, "ctc takes scores of steps, [N,steps,classes]; the output is {}",
           to_string(shape));
    }
    const auto classes = static_cast<std::size_t>(shape[2]);
    if (truths_) {
      add_labelled(actual, expected, classes);
      return;
    }
    for_each_row(actual, expected,
                 [&](auto a, auto e) { count(read_off(a, classes) == read_off(e, classes)); });
  }

 private:
  /// Beside the characters there are the blank and, in some dictionaries, the space.
  void add_labelled(const Tensor& actual, const Tensor& labels, std::size_t classes) {
    const std::int64_t known = truths_->characters();
    const auto wanted = static_cast<std::int64_t>(classes);
    if (wanted != known + 1 && wanted != known + 2) {
      fail(ErrorKind::BadData,
           "the output has {} classes, and the file of characters {} lines: it must have {} (the "
           "blank is class 0), or {} where the last class is the space",
           classes, known, wanted - 1, wanted - 2);
    }
    const std::vector<Truth> texts = truths_of(*truths_, labels, actual, num_rows(actual));
    std::size_t row = 0;
    for_each_row(actual, actual, [&](auto scores, auto /*same*/) {
      const auto text = texts[row++].values.template data<std::int64_t>();
      const std::vector<std::size_t> got = read_off(scores, classes);
      count(std::ranges::equal(got, text, [](std::size_t a, std::int64_t b) {
        return static_cast<std::int64_t>(a) == b;
      }));
    });
  }

  std::shared_ptr<const Truths> truths_;
};

}  // namespace

MetricEntry ctc() {
  return {
      .info = {"ctc",
               "text recognition: percent of texts, read off greedily, that are the labels' or the "
               "reference's",
               false, true, Gather::Share, TruthKind::Text},
      .make = []() -> std::unique_ptr<Metric> { return std::make_unique<Ctc>(); },
      .fits = fits,
      .against = against_truths<Ctc>};
}

}  // namespace quench::metrics
