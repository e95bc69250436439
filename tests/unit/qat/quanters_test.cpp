// SPDX-License-Identifier: Apache-2.0
// Quanters compute what the written model will compute, with the gradients of their formulas.
#include "qat/engine/quanters.h"

#include <gtest/gtest.h>

#include "qat/engine/adaround.h"
#include "qat/engine/fake_quantize.h"
#include "qat/quanter_names.h"
#include "quench/error.h"

namespace quench::qat {
namespace {

constexpr double kClose = 1e-5;

at::Tensor numbers(const std::vector<std::int64_t>& shape, std::uint64_t seed = 1) {
  torch::manual_seed(seed);
  return at::randn(shape);
}

Tensor to_tensor(const at::Tensor& from) {
  const at::Tensor flat = from.detach().contiguous();
  return Tensor::of<float>(
      flat.sizes().vec(),
      std::span<const float>(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())));
}

bool same_bits(const at::Tensor& got, const Tensor& wanted) {
  const at::Tensor flat = got.detach().contiguous();
  const auto expected = wanted.data<float>();
  return flat.numel() == wanted.size() &&
         std::equal(expected.begin(), expected.end(), flat.data_ptr<float>());
}

QuantSpec spec_of(int bits, bool is_signed, bool symmetric, int axis = -1) {
  return {.bits = bits, .is_signed = is_signed, .symmetric = symmetric, .axis = axis};
}

/// Parameters that saturate some of standard normal numbers.
QuantParams narrow_params(const QuantSpec& spec, std::size_t channels = 1) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < channels; ++i) {
    const double bound = 0.8 + 0.1 * static_cast<double>(i);
    ranges.push_back({.min = spec.symmetric ? -bound : -0.5 * bound, .max = bound});
  }
  return choose_params(spec, ranges);
}

/// y = (saturate(round(x / s)) * s) with rounding that gradients pass through.
at::Tensor formula(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero,
                   const QuantSpec& spec) {
  const at::Tensor v = x / scale;
  const at::Tensor low = static_cast<double>(spec.q_min()) - zero;
  const at::Tensor high = static_cast<double>(spec.q_max()) - zero;
  const at::Tensor kept = at::minimum(at::maximum(v, low), high);
  return (kept + (at::round(kept) - kept).detach()) * scale;
}

TEST(FakeQuantize, IsWhatIsWritten) {
  for (const int bits : {2, 3, 4, 8, 12, 16}) {
    for (const bool symmetric : {true, false}) {
      const QuantParams params = narrow_params(spec_of(bits, symmetric, symmetric));
      const at::Tensor x = numbers({5, 7, 11, 13});
      EXPECT_TRUE(same_bits(
          fake_quantize(x, scale_tensor(params), zero_point_tensor(params), steps_of(params.spec)),
          quench::fake_quantize(to_tensor(x), params)))
          << bits << " bits";
    }
  }
}

TEST(FakeQuantize, HasAScaleForEachChannelOfAnyAxis) {
  for (const int axis : {0, 1, 2}) {
    const at::Tensor x = numbers({6, 6, 6});
    const QuantParams params = narrow_params(spec_of(4, true, true, axis), 6);
    EXPECT_TRUE(same_bits(
        fake_quantize(x, scale_tensor(params), zero_point_tensor(params), steps_of(params.spec)),
        quench::fake_quantize(to_tensor(x), params)))
        << "axis " << axis;
  }
}

TEST(FakeQuantize, HasTheGradientsOfItsFormula) {
  for (const bool symmetric : {true, false}) {
    const QuantParams params = narrow_params(spec_of(4, symmetric, symmetric));
    at::Tensor x = numbers({3, 40000}).requires_grad_(true);  // several stretches
    at::Tensor scale = scale_tensor(params).requires_grad_(true);
    const at::Tensor zero = zero_point_tensor(params);
    const at::Tensor weight = numbers({3, 40000}, 2);
    (fake_quantize(x, scale, zero, steps_of(params.spec)) * weight).sum().backward();
    const at::Tensor dx = x.grad().clone();
    const at::Tensor ds = scale.grad().clone();
    x.mutable_grad().zero_();
    scale.mutable_grad().zero_();
    (formula(x, scale, zero, params.spec) * weight).sum().backward();
    EXPECT_TRUE(at::allclose(dx, x.grad(), kClose, kClose));
    EXPECT_NEAR(ds.item<double>(), scale.grad().item<double>(),
                kClose * 1000 * std::abs(scale.grad().item<double>()));
  }
}

/// Where everything saturates the result is smooth in the scale.
TEST(FakeQuantize, HasTheFiniteDifferencesOfItsSmoothPart) {
  const QuantSpec spec = spec_of(4, true, true);
  const at::Tensor zero = at::zeros({1});
  const at::Tensor x = numbers({1000}) * 0.1 + 50;
  const auto sum = [&](double scale) {
    return fake_quantize(x, at::full({1}, scale), zero, steps_of(spec)).sum().item<double>();
  };
  at::Tensor scale = at::full({1}, 0.25).requires_grad_(true);
  fake_quantize(x, scale, zero, steps_of(spec)).sum().backward();
  const double slope = (sum(0.25 + 1.0 / 64) - sum(0.25 - 1.0 / 64)) * 32;
  EXPECT_NEAR(scale.grad().item<double>(), slope, kClose * std::abs(slope));
}

TEST(FakeQuantize, GivesTheOffsetTheGradientOfWhatSaturates) {
  const QuantParams params = narrow_params(spec_of(4, false, false));
  at::Tensor offset = at::zeros({1}).requires_grad_(true);
  const at::Tensor x = numbers({5000});
  fake_quantize(x, scale_tensor(params), zero_point_tensor(params), steps_of(params.spec), offset)
      .sum()
      .backward();
  const at::Tensor v = x / params.scale[0] + params.zero_point[0];
  const auto outside = ((v < 0) | (v > 15)).sum().item<double>();
  EXPECT_NEAR(offset.grad().item<double>(), outside, 1e-3);
}

TEST(Quanters, EveryOneComputesWhatItWillWrite) {
  for (const QuanterRow& row : quanter_rows()) {
    for (const bool weight : {true, false}) {
      const bool unfit = row.use == (weight ? QuanterUse::kActivations : QuanterUse::kWeights);
      if (unfit) continue;
      const QuantSpec spec = weight ? spec_of(4, true, true, 0) : spec_of(8, false, false);
      const at::Tensor x = numbers({4, 300});
      const auto quanter = make_quanter(
          std::string(row.name),
          {.spec = spec, .start = narrow_params(spec, weight ? 4 : 1), .is_weight = weight});
      const at::Tensor got = quanter->forward(x);
      at::Tensor clipped = x;
      if (row.name == "pact") {
        const auto bound = quanter->parameters()[0].tensor.item<double>();
        clipped = at::clamp(x, -bound, bound);
      }
      EXPECT_TRUE(same_bits(got, quench::fake_quantize(to_tensor(clipped), quanter->params())))
          << row.name << (weight ? " of weights" : " of activations");
    }
  }
}

TEST(Quanters, BeginWithTheFirstBatchWhereNothingWasCalibrated) {
  for (const QuanterRow& row : quanter_rows()) {
    if (row.use == QuanterUse::kWeights) continue;
    const auto quanter = make_quanter(std::string(row.name), {.spec = spec_of(8, false, false)});
    const at::Tensor x = numbers({1000}) * 3;
    const at::Tensor got = quanter->forward(x);
    const double error = (got - x).pow(2).mean().item<double>();
    EXPECT_LT(error, row.name == "pact" ? 0.2 : 0.001) << row.name;
  }
}

TEST(Quanters, LsqLearnsTheScaleByItsFormula) {
  const QuantSpec spec = spec_of(4, true, true);
  const auto quanter = make_quanter("lsq", {.spec = spec, .start = narrow_params(spec)});
  const at::Tensor x = numbers({20000});
  quanter->forward(x).pow(2).sum().backward();
  const at::Tensor learned = quanter->parameters()[0].tensor;
  at::Tensor scale = scale_tensor(quanter->params()).requires_grad_(true);
  formula(x, scale, at::zeros({1}), spec).pow(2).sum().backward();
  const double factor = 1 / std::sqrt(20000.0 * 7);
  EXPECT_NEAR(learned.grad().item<double>() / factor, scale.grad().item<double>(),
              0.01 * std::abs(scale.grad().item<double>()));
}

TEST(Quanters, PactLearnsItsBound) {
  const QuantSpec spec = spec_of(8, true, true);
  const auto quanter = make_quanter("pact", {.spec = spec, .init_value = 1.0});
  const at::Tensor x = numbers({4000});
  quanter->forward(x).sum().backward();
  const double wanted = ((x > 1).sum() - (x < -1).sum()).to(at::kDouble).item<double>();
  EXPECT_NEAR(quanter->parameters()[0].tensor.grad().item<double>(), wanted, 1e-3);
}

TEST(Quanters, MovingAverageIsThatOfPaddleSlim) {
  const QuantSpec spec = spec_of(8, true, true);
  const auto quanter = make_quanter("moving_average_abs_max", {.spec = spec, .moving_rate = 0.9});
  quanter->forward(at::full({1}, 1.0));
  quanter->forward(at::full({1}, -3.0));
  const double wanted = (0.9 * 1 + 3) / (0.9 + 1);
  EXPECT_NEAR(static_cast<double>(quanter->params().scale[0]) * 127.5, wanted, 0.02);
  quanter->train(false);
  quanter->forward(at::full({1}, 100.0));  // evaluation moves nothing
  EXPECT_NEAR(static_cast<double>(quanter->params().scale[0]) * 127.5, wanted, 0.02);
}

TEST(Quanters, AdaRoundBeginsSoftAndEndsOnIntegers) {
  const QuantSpec spec = spec_of(3, true, true, 0);
  const at::Tensor weight = numbers({4, 50});
  const QuantParams params = narrow_params(spec, 4);
  AdaRound rounding(params, weight);
  const at::Tensor soft = rounding.forward(weight);
  const at::Tensor inside =
      quench::qat::fake_quantize(weight, scale_tensor(params), at::zeros({4}), steps_of(spec));
  const at::Tensor kept =
      weight.abs() < at::tensor(at::ArrayRef<float>(params.scale)).reshape({4, 1}) * 2;
  EXPECT_LT(((soft - weight) * kept).abs().max().item<double>(), 0.01);
  EXPECT_TRUE(at::allclose(rounding.written(weight) * kept, inside * kept, kClose, kClose));
  rounding.harden();
  EXPECT_TRUE(at::allclose(rounding.forward(weight), rounding.written(weight)));
}

TEST(Quanters, AreCalledAsInPaddleSlimToo) {
  EXPECT_EQ(quanter_called("channel_wise_lsq_weight", true), "lsq_plus");
  EXPECT_EQ(quanter_called("PACT", false), "pact");
  EXPECT_THROW(quanter_called("moving_average_abs_max", true), Error);
  try {
    quanter_called("lsk", true);
    FAIL() << "a quanter that does not exist was found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lsq"), std::string::npos);
  }
}

}  // namespace
}  // namespace quench::qat
