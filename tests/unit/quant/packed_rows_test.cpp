// SPDX-License-Identifier: Apache-2.0
// Packed rows give back every integer on its grid, and take no more bits than they need.
#include "quant/packed_rows.h"

#include <gtest/gtest.h>

#include <random>

namespace quench::quant {
namespace {

TEST(PackedRows, EveryWidthComesBack) {
  std::mt19937 source(99);
  for (int bits = 1; bits <= 16; ++bits) {
    const std::int64_t rows = 5;
    const std::int64_t columns = 37;
    std::vector<std::int16_t> integers(static_cast<std::size_t>(rows * columns));
    for (std::int16_t& each : integers) {
      each =
          static_cast<std::int16_t>(static_cast<int>(source() % (1U << bits)) - (1 << (bits - 1)));
    }
    RowParams params{.group = 16, .scales = {}, .zero_points = {}};
    for (int i = 0; i < rows * 3; ++i) {
      params.scales.push_back(0.5F + static_cast<float>(i));
      params.zero_points.push_back(i - 4);
    }
    const PackedRows packed(std::span<const std::int16_t>(integers), rows, params);
    EXPECT_EQ(packed.columns(), columns);
    EXPECT_LE(packed.bits(), bits == 7 ? 8 : bits);
    std::vector<float> out(static_cast<std::size_t>(columns));
    for (std::int64_t row = 0; row < rows; ++row) {
      packed.expand(row, out.data());
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto grid = static_cast<std::size_t>(row * 3 + i / 16);
        const int integer = integers[static_cast<std::size_t>(row * columns + i)];
        const float expected =
            static_cast<float>(integer - params.zero_points[grid]) * params.scales[grid];
        ASSERT_EQ(out[static_cast<std::size_t>(i)], expected) << bits << " bits";
      }
    }
  }
}

TEST(PackedRows, MemoryIsThatOfTheBits) {
  const std::vector<std::int8_t> integers(64 * 1024, 3);
  std::vector<std::int8_t> four = integers;
  four[5] = -8;
  four[6] = 7;
  const RowParams params{.group = 1024, .scales = std::vector<float>(64, 1.0F), .zero_points = {}};
  EXPECT_LE(PackedRows(std::span<const std::int8_t>(four), 64, params).size(), 32U * 1024 + 512);
}

}  // namespace
}  // namespace quench::quant
