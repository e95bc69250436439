// SPDX-License-Identifier: Apache-2.0
// References of the loops over floats.
#include <algorithm>
#include <limits>

#include "contract/fast_kernels/problem.h"
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

Problem softmax(Random& random, Size size) {
  const auto src = random.floats(length(random, size), -4, 4);
  return whole(
      std::ssize(src), [=](float* dst) { exec::softmax_loop(src.data(), dst, std::ssize(src)); },
      [=] { return softened(Doubles(src.begin(), src.end())); }, 1e-7, 1e-5);
}

Problem softmax_short_rows(Random& random, Size size) {
  const std::int64_t rows = size == Size::Large ? 512 : random.pick(1, 70);
  const std::int64_t columns = random.pick(1, 8);
  const auto src = random.floats(rows * columns, -4, 4);
  return whole(
      rows * columns,
      [=](float* dst) { exec::softmax_short_rows_loop(src.data(), dst, rows, columns); },
      [=] {
        Doubles all;
        for (auto row = src.begin(); row != src.end(); row += columns) {
          std::ranges::copy(softened(Doubles(row, row + columns)), std::back_inserter(all));
        }
        return all;
      },
      1e-7, 1e-5);
}

/// Pixels of a row, each reading `taps` floats that follow each other.
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
