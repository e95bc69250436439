// SPDX-License-Identifier: Apache-2.0
// References of the loops over bytes.
#include <algorithm>

#include "contract/fast_kernels/problem.h"

namespace quench::fast {

ByteStore random_store(Random& random, bool with_zero) {
  ByteStore store;
  store.flip = random.flip();
  if (with_zero) store.zero = static_cast<float>(random.pick(0, 255));
  if (random.pick(0, 2) == 0) {
    store.low = static_cast<float>(random.pick(0, 100));
    store.high = static_cast<float>(random.pick(150, 255));
  }
  return store;
}

double stored(double steps, const ByteStore& store) {
  return std::clamp(steps + static_cast<double>(store.zero), static_cast<double>(store.low),
                    static_cast<double>(store.high));
}

namespace problems {
namespace {

using exec::RowShape;
using Bytes = std::vector<std::uint8_t>;

std::int64_t length(Random& random, Size size) {
  return size == Size::Large ? 1 << 16 : random.pick(1, 700);
}

/// Results are flipped back, to be compared with flipped bytes.
Problem of_bytes(std::int64_t size, std::uint8_t flip, std::function<void(std::uint8_t*)> run,
                 std::function<double(std::int64_t)> wanted, double absolute) {
  return problem<std::uint8_t>(
      size,
      [=](std::uint8_t* dst) {
        run(dst);
        for (std::int64_t i = 0; i < size && flip != 0; ++i) dst[i] ^= flip;
      },
      std::move(wanted), absolute);
}

struct Rows {
  RowShape shape;
  std::int64_t stride;
};
Rows rows(Random& random, Size size) {
  if (size == Size::Large) return {{256, 256}, 320};
  const RowShape shape{random.pick(1, 9), random.pick(1, 150)};
  return {shape, shape.columns + random.pick(0, 30)};
}

double at(const std::vector<float>& numbers, std::int64_t i) {
  return static_cast<double>(numbers[static_cast<std::size_t>(i)]);
}
std::uint8_t at(const Bytes& numbers, std::int64_t i) {
  return numbers[static_cast<std::size_t>(i)];
}

}  // namespace

Problem quantize(Random& random, Size size) {
  const std::int64_t n = length(random, size);
  const auto src = random.floats(n, -3, 3);
  const float scale = random.uniform(0.005F, 0.05F);
  const ByteStore store = random_store(random);
  return of_bytes(
      n, store.flip,
      [=](std::uint8_t* dst) { exec::quantize_loop(src.data(), scale, store, dst, n); },
      [=](std::int64_t i) { return stored(at(src, i) / static_cast<double>(scale), store); },
      kRounded);
}

Problem quantize_planes(Random& random, Size size) {
  const std::int64_t n = length(random, size);
  const std::int64_t channels = size == Size::Large ? 3 : random.pick(1, 5);
  const std::int64_t stride = n + random.pick(0, 7);
  const auto src = random.floats(stride * channels, -3, 3);
  const float scale = random.uniform(0.005F, 0.05F);
  const ByteStore store = random_store(random);
  return of_bytes(
      n * channels, store.flip,
      [=](std::uint8_t* dst) {
        exec::quantize_planes_loop(src.data(), stride, channels, scale, store, dst, n);
      },
      [=](std::int64_t i) {
        const double x = at(src, i % channels * stride + i / channels);
        return stored(x / static_cast<double>(scale), store);
      },
      kRounded);
}

Problem dequantize(Random& random, Size size) {
  const std::int64_t n = length(random, size);
  const auto src = random.bytes(n);
  const std::uint8_t flip = random.flip();
  const auto zero = static_cast<float>(random.pick(0, 255));
  const float scale = random.uniform(0.005F, 0.05F);
  return problem<float>(
      n, [=](float* dst) { exec::dequantize_loop(src.data(), flip, zero, scale, dst, n); },
      [=](std::int64_t i) {
        return (flipped(at(src, i), flip) - static_cast<double>(zero)) * static_cast<double>(scale);
      },
      0, 1e-6);
}

Problem add(Random& random, Size size) {
  const std::int64_t n = length(random, size);
  const auto a = random.bytes(n);
  const auto b = random.bytes(n);
  const exec::ByteSum sum{.scale_a = random.uniform(0.1F, 1),
                          .scale_b = random.uniform(0.1F, 1),
                          .shift = random.uniform(-200, 50),
                          .flip_a = random.flip(),
                          .flip_b = random.flip()};
  const ByteStore store = random_store(random, false);
  return of_bytes(
      n, store.flip,
      [=](std::uint8_t* dst) { exec::add_loop(a.data(), b.data(), sum, store, dst, n); },
      [=](std::int64_t i) {
        return stored(flipped(at(a, i), sum.flip_a) * static_cast<double>(sum.scale_a) +
                          flipped(at(b, i), sum.flip_b) * static_cast<double>(sum.scale_b) +
                          static_cast<double>(sum.shift),
                      store);
      },
      kRounded);
}

Problem mul(Random& random, Size size) {
  const std::int64_t n = length(random, size);
  const auto a = random.bytes(n);
  const auto b = random.bytes(n);
  const exec::ByteLoad first{random.uniform(0.001F, 0.02F), static_cast<float>(random.pick(0, 255)),
                             random.flip()};
  const exec::ByteLoad second{1, static_cast<float>(random.pick(0, 255)), random.flip()};
  const ByteStore store = random_store(random);
  return of_bytes(
      n, store.flip,
      [=](std::uint8_t* dst) { exec::mul_loop(a.data(), first, b.data(), second, store, dst, n); },
      [=](std::int64_t i) {
        return stored((flipped(at(a, i), first.flip) - static_cast<double>(first.shift)) *
                          (flipped(at(b, i), second.flip) - static_cast<double>(second.shift)) *
                          static_cast<double>(first.scale),
                      store);
      },
      kRounded);
}

Problem mul_rows(Random& random, Size size) {
  const RowShape shape = rows(random, size).shape;
  const auto a = random.bytes(shape.rows * shape.columns);
  const auto factors = random.floats(shape.columns, 0, 2);
  const exec::ByteLoad load{random.uniform(0.1F, 1), static_cast<float>(random.pick(0, 255)),
                            random.flip()};
  const ByteStore store = random_store(random);
  return of_bytes(
      shape.rows * shape.columns, store.flip,
      [=](std::uint8_t* dst) {
        exec::mul_rows_loop(a.data(), load, factors.data(), store, dst, shape);
      },
      [=](std::int64_t i) {
        return stored((flipped(at(a, i), load.flip) - static_cast<double>(load.shift)) *
                          at(factors, i % shape.columns) * static_cast<double>(load.scale),
                      store);
      },
      kRounded);
}

Problem look_up(Random& random, Size size) {
  const std::int64_t n = length(random, size);
  const auto table = random.bytes(256);
  const auto src = random.bytes(n);
  return of_bytes(
      n, 0, [=](std::uint8_t* dst) { exec::look_up_loop(table.data(), src.data(), dst, n); },
      [=](std::int64_t i) { return at(table, at(src, i)); }, 0);
}

/// What lies between the rows of the results is left alone: it stays zero.
Problem apart(const Rows& form, std::function<void(std::uint8_t*)> run,
              std::function<double(std::int64_t)> byte) {
  const std::int64_t columns = form.shape.columns;
  return of_bytes(
      form.shape.rows * form.stride, 0, std::move(run),
      [=](std::int64_t i) {
        const std::int64_t column = i % form.stride;
        return column < columns ? byte(i / form.stride * columns + column) : 0;
      },
      0);
}

Problem look_up_rows(Random& random, Size size) {
  const Rows form = rows(random, size);
  const auto table = random.bytes(256);
  const auto src = random.bytes(form.shape.rows * form.shape.columns);
  return apart(
      form,
      [=](std::uint8_t* dst) {
        exec::look_up_rows_loop(table.data(), src.data(), dst, form.shape, form.stride);
      },
      [=](std::int64_t i) { return at(table, at(src, i)); });
}

Problem copy_rows(Random& random, Size size) {
  const Rows form = rows(random, size);
  const auto src = random.bytes(form.shape.rows * form.shape.columns);
  return apart(
      form,
      [=](std::uint8_t* dst) { exec::copy_rows_loop(src.data(), dst, form.shape, form.stride); },
      [=](std::int64_t i) { return at(src, i); });
}

Problem look_up_channels(Random& random, Size size) {
  const RowShape shape = rows(random, size).shape;
  const auto tables = random.bytes(256 * shape.columns);
  const auto src = random.bytes(shape.rows * shape.columns);
  return of_bytes(
      shape.rows * shape.columns, 0,
      [=](std::uint8_t* dst) {
        exec::look_up_channels_loop(tables.data(), shape.columns, src.data(), dst, shape.rows);
      },
      [=](std::int64_t i) { return at(tables, i % shape.columns * 256 + at(src, i)); }, 0);
}

Problem sum_rows(Random& random, Size size) {
  const RowShape shape = rows(random, size).shape;
  const auto src = random.bytes(shape.rows * shape.columns);
  const std::uint8_t flip = random.flip();
  return problem<std::int32_t>(
      shape.columns,
      [=](std::int32_t* sums) {
        std::fill_n(sums, shape.columns, 7);
        exec::sum_rows_loop(src.data(), flip, shape, sums);
      },
      [=](std::int64_t i) {
        double sum = 7;
        for (std::int64_t row = 0; row < shape.rows; ++row) {
          sum += flipped(at(src, row * shape.columns + i), flip);
        }
        return sum;
      },
      0);
}

}  // namespace problems
}  // namespace quench::fast
