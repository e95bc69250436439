// SPDX-License-Identifier: Apache-2.0
// References of products of bytes, of what follows their sums, and of depthwise convolution.
#include <algorithm>
#include <limits>

#include "contract/fast_kernels/problem.h"
#include "exec/engine/int8/depthwise.h"
#include "exec/engine/int8/tile.h"

namespace quench::fast::problems {
namespace {

using exec::AddBytes;
using exec::Finish;
using exec::kTileColumns;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
double real(float x) { return static_cast<double>(x); }

/// A product of rows that lie one after the other, in one piece each.
struct Product {
  int width, rows;
  std::int64_t tiles, groups;
  bool flip;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int8_t> weights;
  std::vector<std::int32_t> start;

  Product(Random& random, Size size, std::int64_t num_tiles)
      : width(static_cast<int>(random.pick(1, exec::kMaxTileWidth))),
        rows(static_cast<int>(random.pick(1, exec::tile_rows(width)))),
        tiles(num_tiles),
        groups(size == Size::Large ? 64 : random.pick(1, 20)),
        flip(random.pick(0, 1) == 1),
        bytes(random.bytes(tiles * rows * groups * 4)),
        weights(random.bytes<std::int8_t>(groups * columns() * 4)) {
    for (std::int64_t i = 0; i < columns(); ++i) {
      start.push_back(static_cast<std::int32_t>(random.pick(-5000, 5000)));
    }
  }
  std::int64_t columns() const { return width * kTileColumns; }
  std::vector<const std::uint8_t*> pieces() const {
    std::vector<const std::uint8_t*> result;
    for (std::int64_t i = 0; i < tiles * rows; ++i) result.push_back(bytes.data() + i * groups * 4);
    return result;
  }
  double sum(std::int64_t row, std::int64_t column) const {
    double result = start[index(column)];
    for (std::int64_t i = 0; i < 4 * groups; ++i) {
      const double weight = weights[index((i / 4 * columns() + column) * 4 + i % 4)];
      result += flipped(bytes[index(row * groups * 4 + i)], flip ? 0x80 : 0) * weight;
    }
    return result;
  }
  exec::Tile tile(const std::vector<const std::uint8_t*>& at, std::int32_t* sums) const {
    return {.pieces = at.data(),
            .stride = tiles * rows,
            .runs = 1,
            .groups = groups,
            .weights = weights.data(),
            .start = start.data(),
            .sums = sums};
  }
};

/// What follows sums of a few ten thousand.
Finish random_finish(Random& random, std::int64_t columns) {
  Finish finish;
  finish.scales = random.floats(columns, 0.0005F, 0.004F);
  finish.shifts = random.floats(columns, -20, 20);
  return finish;
}

/// Sums that are finished, and where they go.
struct Sums {
  int width, rows;
  std::int64_t columns, stride;
  std::vector<std::int32_t> numbers;

  Sums(Random& random, Size size)
      : width(static_cast<int>(random.pick(1, exec::kMaxTileWidth))),
        rows(size == Size::Large ? 6 : static_cast<int>(random.pick(1, 6))),
        columns(random.pick(std::max(1, 16 * width - 15), 16 * width)),
        stride(columns) {
    for (std::int64_t i = 0; i < rows * width * kTileColumns; ++i) {
      numbers.push_back(static_cast<std::int32_t>(random.pick(-40000, 40000)));
    }
  }
  double at(std::int64_t row, std::int64_t column) const {
    return numbers[index(row * width * kTileColumns + column)];
  }
  std::int64_t size() const { return rows * stride; }
  exec::FinishedTile tile(const void* residual, void* dst) const {
    return {.sums = numbers.data(),
            .width = width,
            .rows = rows,
            .columns = columns,
            .stride = stride,
            .residual = residual,
            .dst = dst};
  }
  double scaled(const Finish& finish, std::int64_t i) const {
    const std::int64_t column = i % stride;
    return at(i / stride, column) * real(finish.scales[index(column)]) +
           real(finish.shifts[index(column)]);
  }
};

struct DepthwiseData {
  const std::vector<std::uint8_t>& src;
  const std::vector<std::int8_t>& weights;
};

/// Element `i` of the result before it is scaled.
double depthwise_sum(const exec::DepthwiseShape& shape, const exec::DepthwiseImage& image,
                     const exec::DepthwiseNumbers& numbers, const DepthwiseData& data,
                     std::int64_t i) {
  const std::int64_t c = i % shape.channels;
  const std::int64_t pixel = i / shape.channels;
  const std::int64_t top = pixel / image.dst_width * shape.strides[0] - image.pads[0];
  const std::int64_t left = pixel % image.dst_width * shape.strides[1] - image.pads[1];
  double sum = numbers.sums[index(c)];
  for (std::int64_t ky = 0; ky < shape.kernel[0]; ++ky) {
    for (std::int64_t kx = 0; kx < shape.kernel[1]; ++kx) {
      const std::int64_t y = top + ky;
      const std::int64_t x = left + kx;
      const bool inside = y >= 0 && y < image.height && x >= 0 && x < image.width;
      const double byte =
          inside
              ? flipped(data.src[index((y * image.width + x) * shape.channels + c)], numbers.flip)
              : numbers.zero;
      sum += byte * data.weights[index((c * shape.kernel[0] + ky) * shape.kernel[1] + kx)];
    }
  }
  return sum;
}

}  // namespace

Problem sum_tile(Random& random, Size size) {
  const Product product(random, size, 1);
  return problem<std::int32_t>(
      product.rows * product.columns(),
      [=](std::int32_t* dst) {
        const auto pieces = product.pieces();
        exec::sum_tile(product.tile(pieces, dst), product.width, product.rows, product.flip);
      },
      [=](std::int64_t i) { return product.sum(i / product.columns(), i % product.columns()); }, 0);
}

Problem sum_tiles(Random& random, Size size) {
  const Product product(random, size, size == Size::Large ? 8 : random.pick(1, 3));
  const std::int64_t columns =
      product.columns() - (random.pick(0, 1) == 0 ? 0 : random.pick(0, kTileColumns - 1));
  Finish finish = random_finish(random, product.columns());
  ByteStore store = random_store(random);
  store.flip = 0;
  finish.bare = random.pick(0, 1) == 1;
  if (finish.bare) {
    store = {};
    std::ranges::fill(finish.shifts, 0.0F);
  }
  finish.out = exec::BytePattern(store);
  return problem<std::uint8_t>(
      product.tiles * product.rows * columns,
      [=](std::uint8_t* dst) {
        const auto pieces = product.pieces();
        exec::sum_tiles(product.tile(pieces, nullptr),
                        {.finish = &finish,
                         .columns = columns,
                         .stride = columns,
                         .dst = dst,
                         .tiles = product.tiles},
                        product.width, product.rows, product.flip);
      },
      [=](std::int64_t i) {
        const std::int64_t column = i % columns;
        return stored(product.sum(i / columns, column) * real(finish.scales[index(column)]) +
                          real(finish.shifts[index(column)]),
                      store);
      },
      kRounded);
}

Problem finish_tile(Random& random, Size size) {
  const Sums sums(random, size);
  Finish finish = random_finish(random, sums.width * kTileColumns);
  ByteStore store = random_store(random);
  store.flip = 0;
  finish.out = exec::BytePattern(store);
  finish.slope = random.pick(0, 1) == 0 ? 1.0F : random.uniform(0, 0.5F);
  finish.add = random.pick(0, 1) == 0 ? AddBytes::None : AddBytes::Once;
  finish.residual = {.scale = random.uniform(0.2F, 1),
                     .shift = static_cast<float>(random.pick(0, 255))};
  // Registers read the residual of a last row whole.
  const auto residual = random.bytes(sums.size() + 64);
  return problem<std::uint8_t>(
      sums.size(),
      [=](std::uint8_t* dst) {
        exec::finish_tile(finish,
                          sums.tile(finish.add == AddBytes::None ? nullptr : residual.data(), dst));
      },
      [=](std::int64_t i) {
        double x = sums.scaled(finish, i);
        if (finish.add == AddBytes::Once) {
          x += (residual[index(i)] - real(finish.residual.shift)) * real(finish.residual.scale);
        }
        return stored(x < 0 ? x * real(finish.slope) : x, store);
      },
      kRounded);
}

Problem finish_floats(Random& random, Size size) {
  const Sums sums(random, size);
  Finish finish = random_finish(random, sums.width * kTileColumns);
  finish.floats = true;
  finish.gelu = random.pick(0, 1) == 1;
  const bool bounded = !finish.gelu && random.pick(0, 1) == 1;
  finish.least = bounded ? 0 : -std::numeric_limits<float>::infinity();
  finish.most = bounded ? 6 : std::numeric_limits<float>::infinity();
  const auto residual = random.floats(sums.size(), -3, 3);
  const bool adds = random.pick(0, 1) == 1;
  return problem<float>(
      sums.size(),
      [=](float* dst) {
        exec::finish_floats(finish, sums.tile(adds ? residual.data() : nullptr, dst));
      },
      [=](std::int64_t i) {
        const double x = sums.scaled(finish, i) + (adds ? real(residual[index(i)]) : 0);
        if (finish.gelu) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        return bounded ? std::clamp(x, 0.0, 6.0) : x;
      },
      2e-4, 1e-5);
}

Problem depthwise(Random& random, Size size) {
  const bool large = size == Size::Large;
  exec::DepthwiseShape shape;
  shape.channels = large ? 96 : random.pick(1, 100);
  for (int axis = 0; axis < 2; ++axis) {
    shape.kernel[axis] = large ? 3 : random.pick(1, 5);
    shape.strides[axis] = large ? 1 : random.pick(1, 2);
  }
  exec::DepthwiseImage image;
  image.height = large ? 28 : random.pick(5, 12);
  image.width = large ? 28 : random.pick(5, 12);
  for (std::int64_t& pad : image.pads) pad = random.pick(0, 2);
  image.dst_height =
      (image.height + image.pads[0] + image.pads[2] - shape.kernel[0]) / shape.strides[0] + 1;
  image.dst_width =
      (image.width + image.pads[1] + image.pads[3] - shape.kernel[1]) / shape.strides[1] + 1;
  const auto src = random.bytes(image.height * image.width * shape.channels);
  const auto weights =
      random.bytes<std::int8_t>(shape.channels * shape.kernel[0] * shape.kernel[1]);
  exec::DepthwiseNumbers numbers;
  numbers.scales = random.floats(shape.channels, 0.002F, 0.01F);
  numbers.shifts = random.floats(shape.channels, -20, 20);
  for (std::int64_t i = 0; i < shape.channels; ++i) {
    numbers.sums.push_back(static_cast<std::int32_t>(random.pick(-3000, 3000)));
  }
  numbers.flip = random.flip();
  numbers.zero = static_cast<std::uint8_t>(random.pick(0, 255));
  numbers.store = random_store(random);
  numbers.store.flip = 0;
  return problem<std::uint8_t>(
      image.dst_height * image.dst_width * shape.channels,
      [=](std::uint8_t* dst) {
        exec::DepthwiseNumbers mine = numbers;
        mine.weights = weights.data();
        exec::DepthwiseImage whole = image;
        whole.src = src.data();
        whole.dst = dst;
        const auto conv = exec::Depthwise::make(shape, mine);
        if (conv) conv->run(whole, 0, (image.dst_height + 1) / 2);
      },
      [=](std::int64_t i) {
        const auto c = index(i % shape.channels);
        const double sum = depthwise_sum(shape, image, numbers, {src, weights}, i);
        return stored(sum * real(numbers.scales[c]) + real(numbers.shifts[c]), numbers.store);
      },
      kRounded);
}

}  // namespace quench::fast::problems
