// SPDX-License-Identifier: Apache-2.0
// PACT (Choi et al., 2018): clips at a learned bound, then quantises what is left.
#include "base/format.h"
#include "qat/engine/quanters.h"

namespace quench::qat {
namespace {

constexpr double kFarAway = 100;  ///< PaddleSlim's first bound, where nothing was calibrated

/// Hands on `rounded`, and its gradient to `clipped` untouched: what was clipped lies on the very
/// end of the range, where fake_quantize would call half of it saturated.
class StraightThrough : public torch::autograd::Function<StraightThrough> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& /*clipped*/,
                            const at::Tensor& rounded) {
    return rounded.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0], at::Tensor()};
  }
};

class Pact final : public Quanter {
 public:
  explicit Pact(const QuanterSetup& setup) : setup_(setup), bound_(at::empty({1})) {
    double start = setup.init_value;
    if (start <= 0 && setup.start) {
      for (const Range& range : covered(*setup.start))
        start = std::max({start, -range.min, range.max});
    }
    bound_.fill_(start > 0 ? start : kFarAway).requires_grad_(true);
    if (setup.start) low_ = covered(*setup.start)[0].min;
  }

  at::Tensor forward(const at::Tensor& x) override {
    // x - relu(x - bound) + relu(-bound - x): the bound's gradient is 1 above and -1 below.
    const at::Tensor bound = bound_.abs();
    const at::Tensor clipped = x - at::relu(x - bound) + at::relu(-bound - x);
    const QuantParams now = params();
    return StraightThrough::apply(
        clipped, fake_quantize(clipped.detach(), scale_tensor(now), zero_point_tensor(now),
                               steps_of(now.spec)));
  }

  QuantParams params() const override {
    const double bound = std::abs(bound_.item<double>());
    const double most = setup_.bounds ? std::min(bound, setup_.bounds->max) : bound;
    const bool never_negative = !setup_.spec.symmetric && low_ && *low_ >= 0;
    QuantSpec spec = setup_.spec;
    std::size_t count = 1;
    if (spec.axis >= 0 && setup_.start) count = setup_.start->scale.size();
    if (spec.axis >= 0 && !setup_.start) spec.axis = -1;
    return choose_params(
        spec, std::vector<Range>(count, {.min = never_negative ? 0 : -bound, .max = most}));
  }

  std::vector<Trained> parameters() const override {
    return {{.name = "bound", .tensor = bound_, .rate = setup_.rate, .decay = true}};
  }

 private:
  QuanterSetup setup_;
  at::Tensor bound_;
  std::optional<double> low_;
};

}  // namespace

std::unique_ptr<Quanter> make_pact(const QuanterSetup& setup) {
  return std::make_unique<Pact>(setup);
}

}  // namespace quench::qat
