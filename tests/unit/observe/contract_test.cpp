// SPDX-License-Identifier: Apache-2.0
// What every observer promises at every number of bits, signed or not, symmetric or not.
#include <gtest/gtest.h>

#include <cmath>

#include "unit/observe/samples.h"

namespace quench::testing {
namespace {

/// The root of the mean square error on the grid that an observer's range gives.
double error_of(const Values& values, const QuantParams& params) {
  const Tensor real =
      Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  const std::vector<float> rounded = to_float(fake_quantize(real, params));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += std::pow(static_cast<double>(values[i]) - static_cast<double>(rounded[i]), 2);
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

void check(const ObserverInfo& info, const QuantSpec& spec, const Values& values,
           const Statistic& statistic) {
  const Range range = info.range(statistic, spec);
  ASSERT_TRUE(std::isfinite(range.min) && std::isfinite(range.max));
  EXPECT_LE(range.min, range.max);
  EXPECT_GE(range.min, -statistic.abs_max() * 1.001);
  EXPECT_LE(range.max, statistic.abs_max() * 1.001);
  const QuantParams params = choose_params(spec, {range});
  ASSERT_EQ(params.scale.size(), 1U);
  EXPECT_TRUE(std::isfinite(params.scale[0]) && params.scale[0] > 0);
  EXPECT_EQ(to_float(fake_quantize(Tensor::of<float>({1}, {0}), params))[0], 0);
  // A grid of any kind must beat leaving the values out.
  double energy = 0;
  for (const float value : values) energy += double{value} * double{value};
  EXPECT_LT(error_of(values, params), std::sqrt(energy / static_cast<double>(values.size())));
}

TEST(ObserverContract, HoldsForEveryGrid) {
  const Values values = made_up(7, 20000, 1);
  const Statistic statistic = statistic_of({values});
  for (const ObserverInfo& info : all_observers()) {
    for (int bits = 2; bits <= 16; ++bits) {
      for (const bool is_signed : {false, true}) {
        for (const bool symmetric : {false, true}) {
          SCOPED_TRACE(std::string(info.name) + ", bits " + std::to_string(bits) +
                       (is_signed ? ", signed" : ", unsigned") +
                       (symmetric ? ", symmetric" : ", asymmetric"));
          const QuantSpec spec{.bits = bits, .is_signed = is_signed, .symmetric = symmetric};
          check(info, spec, values, statistic);
        }
      }
    }
  }
}

TEST(ObserverContract, MoreBitsGiveLessError) {
  const Values values = made_up(8, 20000, 0);
  const Statistic statistic = statistic_of({values});
  for (const char* name : {"abs_max", "min_max", "mse", "emd"}) {
    double before = 1e30;
    for (const int bits : {2, 4, 6, 8, 10, 12}) {
      SCOPED_TRACE(std::string(name) + ", bits " + std::to_string(bits));
      const QuantSpec spec{.bits = bits, .symmetric = false};
      const double error =
          error_of(values, choose_params(spec, {find_observer(name).range(statistic, spec)}));
      EXPECT_LT(error, before);
      before = error;
    }
  }
}

}  // namespace
}  // namespace quench::testing
