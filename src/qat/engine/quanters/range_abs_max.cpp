// SPDX-License-Identifier: Apache-2.0
// The greatest range among the last batches.
#include "qat/engine/quanters.h"

namespace quench::qat {
namespace {

class RangeAbsMax final : public RangeQuanter {
 public:
  explicit RangeAbsMax(const QuanterSetup& setup)
      : RangeQuanter(setup),
        seen_(at::zeros({std::max<std::int64_t>(setup.window_size, 1), 2}, at::kFloat)),
        count_(at::zeros({}, at::kLong)) {}
  std::vector<at::Tensor> state() const override {
    std::vector<at::Tensor> all = RangeQuanter::state();
    all.insert(all.end(), {seen_, count_});
    return all;
  }

 private:
  void observe(const at::Tensor& x) override {
    const Range range = ranges_of(x, spec())[0];
    const auto count = count_.item<std::int64_t>();
    const std::int64_t size = seen_.size(0);
    seen_[count % size][0].fill_(range.min);
    seen_[count % size][1].fill_(range.max);
    count_.fill_(count + 1);
    const at::Tensor filled = seen_.narrow(0, 0, std::min(count + 1, size));
    set({{.min = filled.select(1, 0).min().item<double>(),
          .max = filled.select(1, 1).max().item<double>()}});
  }

  at::Tensor seen_;  ///< a ring of ranges
  at::Tensor count_;
};

}  // namespace

std::unique_ptr<Quanter> make_range_abs_max(const QuanterSetup& setup) {
  return std::make_unique<RangeAbsMax>(setup);
}

}  // namespace quench::qat
