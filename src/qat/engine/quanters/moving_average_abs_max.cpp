// SPDX-License-Identifier: Apache-2.0
// Moving average of the batches' ranges: state = rate * state + 1, sum = rate * sum + range.
#include "qat/engine/quanters.h"

namespace quench::qat {
namespace {

/// Beginning with what was calibrated, which counts as one batch; else with the first batch.
class MovingAverage final : public RangeQuanter {
 public:
  explicit MovingAverage(const QuanterSetup& setup)
      : RangeQuanter(setup), rate_(setup.moving_rate), sums_(at::zeros({3}, at::kDouble)) {
    if (!setup.start) return;
    const Range range = covered(*setup.start)[0];
    add(range);
  }
  std::vector<at::Tensor> state() const override {
    std::vector<at::Tensor> all = RangeQuanter::state();
    all.push_back(sums_);
    return all;
  }

 private:
  void add(const Range& range) {
    double* sums = sums_.data_ptr<double>();
    const bool symmetric = spec().symmetric;
    const double most = symmetric ? std::max(-range.min, range.max) : range.max;
    sums[0] = rate_ * sums[0] + 1;
    sums[1] = rate_ * sums[1] + (symmetric ? -most : range.min);
    sums[2] = rate_ * sums[2] + most;
  }

  void observe(const at::Tensor& x) override {
    add(ranges_of(x, spec())[0]);
    const double* sums = sums_.data_ptr<double>();
    set({{.min = sums[1] / sums[0], .max = sums[2] / sums[0]}});
  }

  double rate_;
  at::Tensor sums_;  ///< of weights, of least and of greatest numbers
};

}  // namespace

std::unique_ptr<Quanter> make_moving_average_abs_max(const QuanterSetup& setup) {
  return std::make_unique<MovingAverage>(setup);
}

}  // namespace quench::qat
