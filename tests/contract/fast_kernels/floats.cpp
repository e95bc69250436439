// SPDX-License-Identifier: Apache-2.0
// References of the loops over floats.
#include <algorithm>
#include <limits>
#include <numeric>

#include "contract/fast_kernels/problem.h"
#include "exec/engine/kernels/heads.h"
#include "exec/engine/kernels/row_product.h"
#include "exec/engine/kernels/rows.h"

namespace quench::fast::problems {
namespace {

using Doubles = std::vector<double>;

std::int64_t length(Random& random, Size size) {
  return size == Size::Large ? 4096 : random.pick(1, 300);
}
double at(const std::vector<float>& numbers, std::int64_t i) {
  return static_cast<double>(numbers[static_cast<std::size_t>(i)]);
}

Doubles softened(Doubles row) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (double& each : row) sum += each = std::exp(each - most);
  for (double& each : row) each /= sum;
  return row;
}

/// A problem whose reference makes all elements at once.
Problem whole(std::int64_t size, std::function<void(float*)> run, std::function<Doubles()> wanted,
              double absolute, double relative) {
  Problem result = problem<float>(
      size, std::move(run), [](std::int64_t) { return 0.0; }, absolute, relative);
  result.wanted = std::move(wanted);
  return result;
}

}  // namespace

Problem extent(Random& random, Size size) {
  auto src = random.floats(length(random, size), -5, 5);
  if (random.pick(0, 3) == 0) src[0] = std::numeric_limits<float>::quiet_NaN();
  return whole(
      2,
      [=](float* dst) {
        const auto found = exec::extent_loop(src.data(), std::ssize(src));
        dst[0] = found.first;
        dst[1] = found.second;
      },
      [=] {
        double low = std::numeric_limits<double>::infinity();
        double high = -low;
        for (const float each : src) {
          if (std::isnan(each)) continue;
          low = std::min(low, static_cast<double>(each));
          high = std::max(high, static_cast<double>(each));
        }
        return Doubles{low, high};
      },
      0, 0);
}

Problem gelu(Random& random, Size size) {
  const auto src = random.floats(length(random, size), -8, 8);
  return problem<float>(
      std::ssize(src),
      [=](float* dst) {
        std::ranges::copy(src, dst);
        exec::gelu_loop(dst, std::ssize(src));
      },
      [=](std::int64_t i) {
        return 0.5 * at(src, i) * (1 + std::erf(at(src, i) / std::sqrt(2.0)));
      },
      2e-6, 1e-6);
}

Problem softmax(Random& random, Size size) {
  const auto src = random.floats(length(random, size), -4, 4);
  const auto mask = random.floats(std::ssize(src), -2, 2);
  const bool masks = random.pick(0, 1) == 1;
  const float scale = random.uniform(0.2F, 2);
  return whole(
      std::ssize(src),
      [=](float* dst) {
        exec::softmax_loop(src.data(), scale, masks ? mask.data() : nullptr, dst, std::ssize(src));
      },
      [=] {
        Doubles row;
        for (std::int64_t i = 0; i < std::ssize(src); ++i) {
          row.push_back(at(src, i) * static_cast<double>(scale) + (masks ? at(mask, i) : 0));
        }
        return softened(std::move(row));
      },
      1e-7, 1e-5);
}

Problem softmax_short_rows(Random& random, Size size) {
  const std::int64_t rows = size == Size::Large ? 512 : random.pick(1, 70);
  const std::int64_t columns = random.pick(1, 8);
  const auto src = random.floats(rows * columns, -4, 4);
  const float scale = random.uniform(0.2F, 2);
  return whole(
      rows * columns,
      [=](float* dst) { exec::softmax_short_rows_loop(src.data(), scale, dst, rows, columns); },
      [=] {
        Doubles all;
        for (std::int64_t row = 0; row < rows; ++row) {
          Doubles numbers;
          for (std::int64_t i = 0; i < columns; ++i) {
            numbers.push_back(at(src, row * columns + i) * static_cast<double>(scale));
          }
          std::ranges::copy(softened(numbers), std::back_inserter(all));
        }
        return all;
      },
      1e-7, 1e-5);
}

Problem layer_norm(Random& random, Size size) {
  const auto src = random.floats(length(random, size) + 1, -3, 3);
  const std::int64_t n = std::ssize(src);
  const auto scale = random.floats(n, 0.5, 2);
  const auto bias = random.floats(n, -1, 1);
  const bool biased = random.pick(0, 1) == 1;
  return whole(
      n,
      [=](float* dst) {
        exec::layer_norm_loop(
            src.data(),
            {.scale = scale.data(), .bias = biased ? bias.data() : nullptr, .epsilon = 1e-5F}, dst,
            n);
      },
      [=] {
        const double mean = std::accumulate(src.begin(), src.end(), 0.0) / static_cast<double>(n);
        double variance = 0;
        for (const float each : src) variance += std::pow(static_cast<double>(each) - mean, 2);
        variance /= static_cast<double>(n);
        Doubles row;
        for (std::int64_t i = 0; i < n; ++i) {
          row.push_back((at(src, i) - mean) / std::sqrt(variance + 1e-5) * at(scale, i) +
                        (biased ? at(bias, i) : 0));
        }
        return row;
      },
      1e-4, 1e-5);
}

Problem lp_norm(Random& random, Size size) {
  const auto src = random.floats(length(random, size), -3, 3);
  const bool second = random.pick(0, 1) == 1;
  return whole(
      std::ssize(src),
      [=](float* dst) { exec::lp_norm_loop(src.data(), second, dst, std::ssize(src)); },
      [=] {
        double sum = 0;
        for (const float each : src) {
          const auto x = std::abs(static_cast<double>(each));
          sum += second ? x * x : x;
        }
        Doubles row;
        for (const float each : src) {
          row.push_back(static_cast<double>(each) / (second ? std::sqrt(sum) : sum));
        }
        return row;
      },
      1e-7, 1e-5);
}

Problem attend(Random& random, Size size) {
  const bool large = size == Size::Large;
  const exec::HeadShape shape{.keys = large ? 128 : random.pick(1, 50),
                              .depth = large ? 64 : random.pick(1, 40),
                              .width = large ? 64 : random.pick(1, 40)};
  const std::int64_t count = large ? exec::kQueries : random.pick(1, exec::kQueries);
  const auto queries = random.floats(count * shape.depth, -1, 1);
  const auto keys = random.floats(shape.keys * shape.depth, -1, 1);
  const auto values = random.floats(shape.keys * shape.width, -1, 1);
  const auto mask = random.floats(shape.keys, -2, 2);
  const bool masks = random.pick(0, 1) == 1;
  const float scale = random.uniform(0.2F, 1);
  return whole(
      count * shape.width,
      [=](float* dst) {
        std::vector<float> space(static_cast<std::size_t>(shape.space()));
        const std::vector<const float*> rows(static_cast<std::size_t>(count), mask.data());
        exec::pack_head(shape, {keys.data(), shape.depth}, {values.data(), shape.width},
                        space.data());
        exec::attend(shape,
                     {.rows = {queries.data(), shape.depth},
                      .count = count,
                      .scale = scale,
                      .masks = masks ? rows.data() : nullptr,
                      .dst = dst,
                      .stride = shape.width},
                     space.data());
      },
      [=] {
        Doubles all;
        for (std::int64_t q = 0; q < count; ++q) {
          Doubles scores;
          for (std::int64_t k = 0; k < shape.keys; ++k) {
            double sum = 0;
            for (std::int64_t i = 0; i < shape.depth; ++i) {
              sum += at(queries, q * shape.depth + i) * at(keys, k * shape.depth + i);
            }
            scores.push_back(sum * static_cast<double>(scale) + (masks ? at(mask, k) : 0));
          }
          scores = softened(scores);
          for (std::int64_t c = 0; c < shape.width; ++c) {
            double sum = 0;
            for (std::int64_t k = 0; k < shape.keys; ++k) {
              sum += scores[static_cast<std::size_t>(k)] * at(values, k * shape.width + c);
            }
            all.push_back(sum);
          }
        }
        return all;
      },
      1e-5, 1e-5);
}

/// Pixels of a line, each reading `taps` floats that follow each other.
Problem multiply_row(Random& random, Size size) {
  const bool large = size == Size::Large;
  const std::int64_t taps = large ? 27 : random.pick(1, 30);
  const std::int64_t columns = large ? 32 : random.pick(1, 70);
  const std::int64_t pixels = large ? 112 : random.pick(1, 25);
  const std::int64_t step = random.pick(1, 6);
  const std::int64_t lanes = (columns + exec::kRowLanes - 1) / exec::kRowLanes * exec::kRowLanes;
  const auto src = random.floats(pixels * step + taps, -1, 1);
  const auto weights = random.floats(taps * lanes, -1, 1);
  const auto start = random.floats(lanes, -1, 1);
  const float most = random.uniform(0.5F, 6);
  return problem<float>(
      pixels * columns,
      [=](float* dst) {
        std::vector<exec::RowTap> list;
        for (std::int64_t i = 0; i < taps; ++i) list.push_back({i, weights.data() + i * lanes});
        exec::multiply_row({.src = src.data(),
                            .step = step,
                            .taps = list,
                            .start = start.data(),
                            .least = 0,
                            .most = most,
                            .dst = dst,
                            .stride = columns,
                            .columns = columns,
                            .pixels = pixels});
      },
      [=](std::int64_t i) {
        double sum = at(start, i % columns);
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          sum += at(src, i / columns * step + tap) * at(weights, tap * lanes + i % columns);
        }
        return std::clamp(sum, 0.0, static_cast<double>(most));
      },
      1e-5, 1e-5);
}

}  // namespace quench::fast::problems
