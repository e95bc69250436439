// SPDX-License-Identifier: Apache-2.0
// The gradients of every quanter beside libtorch's own of the same formula, in double precision,
// and beside finite differences where the formula is smooth.
#include <gtest/gtest.h>

#include "qat/engine/adaround.h"
#include "qat/engine/mix.h"
#include "qat/engine/quanters.h"
#include "qat/quanter_names.h"

namespace quench::qat {
namespace {

constexpr double kClose = 1e-5;
constexpr std::int64_t kChannels = 4;

at::Tensor numbers(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  torch::manual_seed(seed);
  return at::randn(shape);
}

struct Case {
  std::string name;
  bool weight = false;
  QuantSpec spec;
};

/// Every quanter for what it is for, at several bits, symmetric or not, by channel or not.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const QuanterRow& row : quanter_rows()) {
    for (const int bits : {2, 3, 4, 8, 12}) {
      const auto add = [&](bool weight, bool is_signed, bool symmetric, int axis) {
        const bool unfit = row.use == (weight ? QuanterUse::kActivations : QuanterUse::kWeights);
        if (unfit) return;
        all.push_back(
            {.name = std::string(row.name),
             .weight = weight,
             .spec = {.bits = bits, .is_signed = is_signed, .symmetric = symmetric, .axis = axis}});
      };
      add(true, true, true, 0);
      add(true, true, true, -1);
      add(false, true, true, -1);
      add(false, false, false, -1);
    }
  }
  return all;
}

QuantParams start_of(const Case& each) {
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < (each.spec.axis < 0 ? 1 : kChannels); ++i) {
    const double bound = 0.8 + 0.1 * static_cast<double>(i);
    ranges.push_back({.min = each.spec.symmetric ? -bound : -0.5 * bound, .max = bound});
  }
  return choose_params(each.spec, ranges);
}

at::Tensor in_double(const at::Tensor& tensor, bool learned) {
  return tensor.detach().to(at::kDouble).requires_grad_(learned);
}

/// y = round(saturate((x - offset) / scale)) * scale + offset, where rounding hands gradients on.
at::Tensor formula(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero,
                   const at::Tensor& offset, const QuantSpec& spec) {
  const auto along = [&](const at::Tensor& vector) {
    return vector.numel() == 1 ? vector : vector.reshape({-1, 1});
  };
  const at::Tensor steps = (x - offset) / along(scale);
  const at::Tensor low = static_cast<double>(spec.q_min()) - along(zero);
  const at::Tensor high = static_cast<double>(spec.q_max()) - along(zero);
  const at::Tensor kept = at::minimum(at::maximum(steps, low), high);
  return (kept + (at::round(kept) - kept).detach()) * along(scale) + offset;
}

/// What the paper of a learned scale multiplies its gradient by.
double factor_of(const Case& each, const at::Tensor& x) {
  if (!each.name.starts_with("lsq")) return 1;
  const std::int64_t channels = each.spec.axis < 0 ? 1 : kChannels;
  return 1 / std::sqrt(static_cast<double>(x.numel() / channels * each.spec.q_max()));
}

/// Nearer than 1e-5 of what was summed up.
void expect_close(const at::Tensor& got, const at::Tensor& wanted, double size,
                  const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  const auto away = (got.to(at::kDouble) - wanted).abs().max().item<double>();
  EXPECT_LE(away, kClose * std::max(size, 1e-3)) << what;
}

TEST(Gradients, OfEveryQuanterAreThoseOfItsFormula) {
  for (const Case& each : cases()) {
    const std::string what = each.name + (each.weight ? " of weights, " : " of activations, ") +
                             std::to_string(each.spec.bits) + " bits, axis " +
                             std::to_string(each.spec.axis);
    const auto quanter = make_quanter(
        each.name, {.spec = each.spec, .start = start_of(each), .is_weight = each.weight});
    quanter->train(false);
    at::Tensor x = numbers({kChannels, 300}, 3).requires_grad_(true);
    const at::Tensor weight = numbers({kChannels, 300}, 4);
    (quanter->forward(x) * weight).sum().backward();

    at::Tensor wide = in_double(x, true);
    const QuantParams params = quanter->params();
    at::Tensor scale = in_double(scale_tensor(params), true);
    at::Tensor offset = at::zeros({1}, at::kDouble).requires_grad_(true);
    at::Tensor bound = at::full({1}, 1e9, at::kDouble).requires_grad_(true);
    if (each.name == "pact") bound = in_double(quanter->parameters()[0].tensor, true);
    const at::Tensor clipped = wide - at::relu(wide - bound) + at::relu(-bound - wide);
    const at::Tensor zero = zero_point_tensor(params).to(at::kDouble);
    // PACT clips where it learned to: rounding hands everything on that is left.
    const at::Tensor quantized = formula(clipped, scale, zero, offset, each.spec);
    const at::Tensor y = each.name == "pact" ? clipped + (quantized - clipped).detach() : quantized;
    (y * weight).sum().backward();

    expect_close(x.grad(), wide.grad(), 1, what);
    const double factor = factor_of(each, x);
    const double summed = weight.abs().sum().item<double>();
    for (const Trained& learned : quanter->parameters()) {
      const at::Tensor& own = learned.name == "bound"    ? bound
                              : learned.name == "offset" ? offset
                                                         : scale;
      expect_close(learned.tensor.grad(), own.grad() * factor, summed * factor,
                   what + ": " + learned.name);
    }
  }
}

TEST(Gradients, OfAMixtureGoWhereItsElementsCameFrom) {
  for (const double share : {0.0, 0.25, 1.0}) {
    at::Tensor one = at::full({3, 50, 400}, 2.0F).requires_grad_(true);
    at::Tensor other = at::full({3, 50, 400}, 5.0F).requires_grad_(true);
    const at::Tensor weight = numbers({3, 50, 400}, 5);
    const at::Tensor y = mixed(one, other, {.share = share, .seed = 11});
    (y * weight).sum().backward();
    const at::Tensor taken = (y == 2).to(at::kFloat);
    EXPECT_NEAR(taken.mean().item<double>(), share, 0.01);
    EXPECT_TRUE(at::equal(one.grad(), weight * taken)) << share;
    EXPECT_TRUE(at::equal(other.grad(), weight * (1 - taken))) << share;
    // The seed alone decides: another one takes others, the same one takes the same.
    EXPECT_TRUE(at::equal(y, mixed(one, other, {.share = share, .seed = 11})));
    const bool same = at::equal(y, mixed(one, other, {.share = share, .seed = 12}));
    EXPECT_EQ(same, share == 0 || share == 1);
  }
}

/// The sum of what a quanter makes of numbers that all saturate, with a parameter moved.
double sum_at(Quanter& quanter, const at::Tensor& parameter, double value, const at::Tensor& x) {
  const at::NoGradGuard no_gradients;
  at::Tensor(parameter).fill_(value);
  return quanter.forward(x).to(at::kDouble).sum().item<double>();
}

TEST(Gradients, OfWhatIsLearnedAreFiniteDifferencesWhereItIsSmooth) {
  for (const std::string name : {"lsq", "lsq_plus", "pact"}) {
    Case each{.name = name, .spec = {.bits = 4, .is_signed = true, .symmetric = true}};
    const auto quanter = make_quanter(name, {.spec = each.spec, .start = start_of(each)});
    quanter->train(false);
    // Two thirds far above, one third far below.
    const at::Tensor x = at::cat({at::full({200}, 50.0), at::full({100}, -50.0)});
    const at::Tensor parameter = quanter->parameters()[0].tensor;
    const auto value = static_cast<double>(parameter.item<float>());
    quanter->forward(x).sum().backward();
    const double step = value / 64;
    const double slope = (sum_at(*quanter, parameter, value + step, x) -
                          sum_at(*quanter, parameter, value - step, x)) /
                         (2 * step);
    const double factor = factor_of(each, x);
    EXPECT_NEAR(parameter.grad().item<double>(), slope * factor, kClose * std::abs(slope * factor))
        << name;
  }
}

TEST(Gradients, OfLearnedRoundingAreFiniteDifferences) {
  const Case each{.spec = {.bits = 4, .is_signed = true, .symmetric = true, .axis = 0}};
  const at::Tensor weight = numbers({kChannels, 50}, 5) * 0.2;
  const at::Tensor by = numbers({kChannels, 50}, 6);
  AdaRound rounding(start_of(each), weight);
  (rounding.forward(weight) * by).sum().backward();
  for (const Trained& learned : rounding.parameters()) {
    float* numbers = learned.tensor.data_ptr<float>();
    for (const std::int64_t i : {std::int64_t{0}, learned.tensor.numel() - 1}) {
      const at::NoGradGuard no_gradients;
      const float kept = numbers[i];
      const auto at_value = [&](float value) {
        numbers[i] = value;
        return (rounding.forward(weight).to(at::kDouble) * by).sum().item<double>();
      };
      const float step = 0.02F * std::max(std::abs(kept), 0.1F);
      const double above = at_value(kept + step);
      const double below = at_value(kept - step);
      numbers[i] = kept;
      const double slope = (above - below) / (2 * static_cast<double>(step));
      const auto own = static_cast<double>(learned.tensor.grad().view({-1})[i].item<float>());
      // A sigmoid is curved: the third derivative is what a difference misses.
      EXPECT_NEAR(own, slope, 1e-3 * std::max(std::abs(slope), 0.1)) << learned.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace quench::qat
