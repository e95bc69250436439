// SPDX-License-Identifier: Apache-2.0
// Each observer against a slow reference over the values themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "quench/error.h"
#include "samples.h"

namespace quench {
namespace {

using testing::made_up;
using testing::statistic_of;
using testing::Values;

const QuantSpec kSymmetric{};
const QuantSpec kAsymmetric{.is_signed = false, .symmetric = false};

Range range_of(const char* name, const Statistic& statistic, const QuantSpec& spec) {
  return find_observer(name).range(statistic, spec);
}

/// The mean squared error of really quantising.
double real_error(const Values& values, const QuantSpec& spec, const Range& range) {
  const Tensor real =
      Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  const Tensor fake = fake_quantize(real, choose_params(spec, {range}));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error =
        static_cast<double>(values[i]) - static_cast<double>(fake.data<float>()[i]);
    sum += error * error;
  }
  return sum / static_cast<double>(values.size());
}

TEST(ExpectedError, IsWhatQuantisingDoes) {
  for (int shape = 0; shape < 4; ++shape) {
    const Values values = made_up(11, 100000, shape);
    const Statistic statistic = statistic_of({values});
    for (const int bits : {4, 6, 8, 12, 16}) {
      for (const double factor : {1.0, 0.7, 0.2}) {
        QuantSpec spec = kAsymmetric;
        spec.bits = bits;
        const Range range{factor * statistic.min, factor * statistic.max};
        const double expected = expected_error(statistic, choose_params(spec, {range}));
        // Values crowd inside one bin at the peak of shape 2, which steps as fine as bins can see.
        const double tolerance = shape == 2 && bits > 8 ? 0.2 : 0.03;
        EXPECT_NEAR(expected / real_error(values, spec, range), 1, tolerance)
            << "shape " << shape << " bits " << bits << " factor " << factor;
      }
    }
  }
}

TEST(Observers, TakeExtremesAndAverages) {
  const Statistic statistic = statistic_of({{-1, 0.5f, 2}, {-3, 1}, {0, 1}});
  EXPECT_EQ(range_of("abs_max", statistic, kSymmetric), (Range{-3, 3}));
  EXPECT_EQ(range_of("abs_max", statistic, kAsymmetric), (Range{-3, 2}));
  EXPECT_EQ(range_of("MAX_MIN", statistic, kAsymmetric), (Range{-3, 2}));
  EXPECT_EQ(range_of("avg", statistic, kSymmetric), (Range{-2, 2}));
  EXPECT_EQ(range_of("avg", statistic, kAsymmetric), (Range{-2, 2}));
  EXPECT_EQ(range_of("removal_outlier", statistic, kAsymmetric), (Range{-4.0 / 3, 4.0 / 3}));
  const double moving = (0.81 * 2 + 0.9 * 3 + 1) / (0.81 + 0.9 + 1);
  EXPECT_NEAR(range_of("moving_average_abs_max", statistic, kSymmetric).max, moving, 1e-12);
}

TEST(Observers, PtfDividesByPowersOfTwo) {
  Values values;
  for (int i = 0; i < 10000; ++i) values.push_back(static_cast<float>(i - 5000) / 5000);
  QuantSpec spec = kSymmetric;
  spec.bits = 4;
  EXPECT_EQ(range_of("ptf", statistic_of({values}), spec), (Range{-1, 1}));
  values.push_back(8);  // one value far out is clipped
  EXPECT_EQ(range_of("ptf", statistic_of({values}), spec), (Range{-1, 1}));
}

TEST(Observers, HistTakesQuantiles) {
  Values values = made_up(12, 50000, 2);
  const Statistic statistic = statistic_of({values});
  QuantSpec spec = kAsymmetric;
  spec.hist_percent = 0.999;
  const Range range = range_of("percentile", statistic, spec);
  std::sort(values.begin(), values.end());
  EXPECT_NEAR(range.min, static_cast<double>(values[50]), 2 * statistic.bin_width);
  EXPECT_NEAR(range.max, static_cast<double>(values[49950]), 2 * statistic.bin_width);
  spec.symmetric = true;
  for (float& value : values) value = std::fabs(value);
  std::sort(values.begin(), values.end());
  EXPECT_NEAR(range_of("hist", statistic, spec).max, static_cast<double>(values[49950]),
              2 * statistic.bin_width);
  spec.hist_percent = 1;
  EXPECT_EQ(range_of("hist", statistic, spec).max, statistic.abs_max());
  spec.hist_percent = 99.9;
  EXPECT_THROW(range_of("hist", statistic, spec), Error);
}

/// The best of a fine net of both ends, by really quantising.
double least_real_error(const Values& values, const Statistic& seen, const QuantSpec& spec) {
  double least = std::numeric_limits<double>::infinity();
  for (double low = 1; low > 0.1; low *= 0.9) {
    for (double high = 1; high > 0.1; high *= 0.9) {
      if (spec.symmetric && low != high) continue;
      const double largest = seen.abs_max();
      const Range range = spec.symmetric ? Range{-low * largest, low * largest}
                                         : Range{low * seen.min, high * seen.max};
      least = std::min(least, real_error(values, spec, range));
    }
  }
  return least;
}

TEST(Observers, MseFindsTheLeastError) {
  for (int shape = 0; shape < 4; ++shape) {
    const Values values = made_up(13, 2000, shape);
    const Statistic statistic = statistic_of({values});
    for (QuantSpec spec : {kSymmetric, kAsymmetric}) {
      for (const int bits : {4, 8}) {
        spec.bits = bits;
        const double found = real_error(values, spec, range_of("mse", statistic, spec));
        EXPECT_LE(found, 1.03 * least_real_error(values, statistic, spec))
            << "shape " << shape << " bits " << bits << " symmetric " << spec.symmetric;
      }
    }
  }
}

TEST(Observers, EmdKeepsMeanAndSpread) {
  for (int shape = 0; shape < 4; ++shape) {
    const Values values = made_up(14, 20000, shape);
    const Statistic statistic = statistic_of({values});
    const auto moments = [](auto data) {
      double sum = 0;
      double squares = 0;
      for (const float value : data) {
        sum += static_cast<double>(value);
        squares += static_cast<double>(value) * static_cast<double>(value);
      }
      const double mean = sum / static_cast<double>(data.size());
      return Range{mean, std::sqrt(squares / static_cast<double>(data.size()) - mean * mean)};
    };
    const auto loss = [&](const Range& range) {
      const Tensor real = Tensor::of<float>({static_cast<std::int64_t>(values.size())},
                                            std::span<const float>(values));
      const Tensor fake = fake_quantize(real, choose_params(kSymmetric, {range}));
      const Range before = moments(std::span<const float>(values));
      const Range after = moments(fake.data<float>());
      return std::fabs(before.min - after.min) + std::fabs(before.max - after.max);
    };
    double least = std::numeric_limits<double>::infinity();
    for (int percent = 100; percent >= 30; percent -= 2) {
      const double threshold = statistic.abs_max() * percent / 100.0;
      least = std::min(least, loss({-threshold, threshold}));
    }
    EXPECT_LE(loss(range_of("emd", statistic, kSymmetric)), least + 2e-4) << "shape " << shape;
  }
}

/// The divergence by the book: no running sums, over bins of magnitudes without exact zeros.
double slow_divergence(const std::vector<double>& bins, std::size_t kept, std::size_t levels) {
  std::vector<double> fine(bins.begin(), bins.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<double> coarse(kept);
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t from = level * kept / levels;
    const std::size_t to = (level + 1) * kept / levels;
    double sum = 0;
    double used = 0;
    for (std::size_t i = from; i < to; ++i) sum += bins[i];
    for (std::size_t i = from; i < to; ++i) used += bins[i] > 0 ? 1 : 0;
    for (std::size_t i = from; i < to; ++i) coarse[i] = bins[i] > 0 ? sum / used : 0;
  }
  for (std::size_t i = kept; i < bins.size(); ++i) fine.back() += bins[i];
  double fine_sum = 0;
  double coarse_sum = 0;
  for (const double count : fine) fine_sum += count;
  for (const double count : coarse) coarse_sum += count;
  if (coarse_sum < 0.999 * fine_sum) return std::numeric_limits<double>::infinity();
  double divergence = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    if (fine[i] <= 0) continue;
    const double there = coarse[i] > 0 ? coarse[i] : 1e-7;
    divergence += fine[i] / fine_sum * std::log(fine[i] / fine_sum / (there / coarse_sum));
  }
  return divergence;
}

TEST(Observers, KlFindsTheLeastDivergence) {
  Values values = made_up(15, 30000, 2);
  values.insert(values.end(), 10000, 0.0f);
  const Statistic statistic = statistic_of({values});
  std::vector<double> bins;
  for (const float value : values) {
    if (value == 0.0f) continue;
    const auto bin =
        static_cast<std::size_t>(std::fabs(static_cast<double>(value)) / statistic.bin_width);
    if (bin >= bins.size()) bins.resize(bin + 1);
    ++bins[bin];
  }
  double least = std::numeric_limits<double>::infinity();
  std::size_t best = 0;
  for (std::size_t kept = 127; kept <= bins.size(); ++kept) {
    const double found = slow_divergence(bins, kept, 127);
    if (found < least) {
      least = found;
      best = kept;
    }
  }
  const double threshold = range_of("entropy", statistic, kSymmetric).max;
  const auto kept = static_cast<std::size_t>(std::ceil(threshold / statistic.bin_width));
  EXPECT_LE(slow_divergence(bins, std::min(kept, bins.size()), 127), 1.02 * least + 1e-6)
      << kept << " instead of " << best;
}

TEST(Observers, HistWithFewBinsIsCoarser) {
  const Statistic statistic = statistic_of({made_up(22, 50000, 1)});
  QuantSpec spec = kAsymmetric;
  spec.hist_percent = 0.999;
  const double fine = range_of("hist", statistic, spec).max;
  spec.bins = 16;
  const double coarse = range_of("hist", statistic, spec).max;
  EXPECT_NE(fine, coarse);
  EXPECT_NEAR(fine, coarse, statistic.max / 16);
}

TEST(Observers, KlUsesOneSidedGridsWhole) {
  const Statistic positive = statistic_of({made_up(16, 30000, 1)});
  const Range range = range_of("KL", positive, kAsymmetric);
  EXPECT_EQ(range.min, 0);
  EXPECT_GT(range.max, 1);
  EXPECT_LE(range.max, positive.max);
  const Statistic negative = statistic_of({made_up(16, 30000, 3)});
  const Range below = range_of("KL", negative, kAsymmetric);
  EXPECT_EQ(below.max, 0);
  EXPECT_LT(below.min, -1);
}

TEST(Observers, KlLeavesAnOutlierOut) {
  Values values = made_up(17, 100000);
  values[7] = 300.0f;
  const Statistic statistic = statistic_of({values});
  EXPECT_LT(range_of("KL", statistic, kSymmetric).max, 100);
  EXPECT_LT(range_of("KL", statistic, kAsymmetric).max, 100);
}

TEST(Observers, AutoIsNotWorseThanAny) {
  for (int shape = 0; shape < 4; ++shape) {
    const Statistic statistic = statistic_of({made_up(18, 20000, shape)});
    for (const QuantSpec& spec : {kSymmetric, kAsymmetric}) {
      const auto error = [&](const ObserverInfo& info) {
        return expected_error(statistic, choose_params(spec, {info.range(statistic, spec)}));
      };
      for (const auto& info : all_observers()) {
        EXPECT_LE(error(find_observer("auto")), error(info)) << info.name;
      }
    }
  }
}

TEST(Observers, AutoIsJudgedByHeldOutSamples) {
  Values outlying = made_up(19, 20000);
  outlying[0] = 1000.0f;
  const Statistic held_out = statistic_of({Values(100, 1000.0f)});
  const ObserverChoice choice = best_observer(statistic_of({outlying}), held_out, kAsymmetric);
  EXPECT_NEAR(choice.range.max, 1000, 5);
}

TEST(Observers, SurviveDegenerateData) {
  const float largest = std::numeric_limits<float>::max();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<Values>> cases = {
      {},         {{}},          {{0, 0, 0}},           {Values(100, 3.5f)}, {Values(100, -3.5f)},
      {{1e-42f}}, {{5.0f}},      {{largest, -largest}}, {{nan, nan}},        {{nan, 1.0f}},
      {{-1, -2}}, {{0, 1e-30f}}, {made_up(20, 100, 3)}};
  for (const auto& samples : cases) {
    const Statistic statistic = statistic_of(samples);
    for (const auto& info : all_observers()) {
      for (QuantSpec spec : {kSymmetric, kAsymmetric}) {
        for (const int bits : {2, 8, 16}) {
          spec.bits = bits;
          const Range range = info.range(statistic, spec);
          EXPECT_TRUE(std::isfinite(range.min) && std::isfinite(range.max)) << info.name;
          EXPECT_LE(range.min, range.max) << info.name;
          EXPECT_LE(range.max, statistic.abs_max()) << info.name;
          EXPECT_GE(range.min, -statistic.abs_max()) << info.name;
          EXPECT_GT(choose_params(spec, {range}).scale[0], 0) << info.name;
        }
      }
    }
  }
}

TEST(Observers, AreFoundByNameAndAlias) {
  EXPECT_EQ(find_observer("kl").name, "KL");
  EXPECT_EQ(find_observer("removal_OUTLIER").name, "removal_outlier");
  EXPECT_EQ(find_observer("max_min").name, "min_max");
  try {
    find_observer("min_mex");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("did you mean 'min_max'"), std::string::npos);
  }
}

}  // namespace
}  // namespace quench
