// SPDX-License-Identifier: Apache-2.0
// Rows of integers of any width, and back to floats.
#include "quant/packed_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace quench::quant {
namespace {

/// Readers take eight bytes at a time.
constexpr std::size_t kSlack = 8;

struct Affine {
  float scale;
  float shift;  ///< smallest integer less zero point: what a stored zero stands for
};

void expand_bytes(const std::uint8_t* src, std::int64_t count, Affine affine, float* dst) {
  for (std::int64_t i = 0; i < count; ++i) {
    dst[i] = (static_cast<float>(src[i]) + affine.shift) * affine.scale;
  }
}

/// Fields of `bits` bits that begin at bit `at`.
void expand_bits(const std::uint8_t* src, std::uint64_t at, int bits, std::span<float> dst,
                 Affine affine) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (float& each : dst) {
    std::uint64_t word = 0;
    std::memcpy(&word, src + at / 8, sizeof(word));
    each = (static_cast<float>((word >> (at % 8)) & mask) + affine.shift) * affine.scale;
    at += static_cast<std::uint64_t>(bits);
  }
}

}  // namespace

PackedRows::PackedRows(std::span<const std::int8_t> integers, std::int64_t rows, RowParams params)
    : rows_(rows),
      columns_(std::ssize(integers) / std::max<std::int64_t>(rows, 1)),
      params_(std::move(params)) {
  pack(integers);
}

PackedRows::PackedRows(std::span<const std::int16_t> integers, std::int64_t rows, RowParams params)
    : rows_(rows),
      columns_(std::ssize(integers) / std::max<std::int64_t>(rows, 1)),
      params_(std::move(params)) {
  pack(integers);
}

template <typename T>
void PackedRows::pack(std::span<const T> integers) {
  const auto [low, high] = std::ranges::minmax_element(integers);
  if (low == integers.end()) return;
  base_ = int{*low};
  bits_ = std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(*high - *low))));
  // Seven bits are read no faster than eight and save little; bytes are read much faster.
  if (bits_ == 7) bits_ = 8;
  row_bytes_ = (static_cast<std::size_t>(columns_) * static_cast<std::size_t>(bits_) + 7) / 8;
  data_.assign(row_bytes_ * static_cast<std::size_t>(rows_) + kSlack, 0);
  for (std::int64_t row = 0; row < rows_; ++row) {
    std::uint8_t* out = data_.data() + row_bytes_ * static_cast<std::size_t>(row);
    std::uint64_t held = 0;
    int count = 0;
    for (std::int64_t i = 0; i < columns_; ++i) {
      const auto value = static_cast<std::uint64_t>(
          integers[static_cast<std::size_t>(row * columns_ + i)] - base_);
      held |= value << count;
      for (count += bits_; count >= 8; count -= 8, held >>= 8) {
        *out++ = static_cast<std::uint8_t>(held);
      }
    }
    if (count > 0) *out = static_cast<std::uint8_t>(held);
  }
}

std::size_t PackedRows::size() const noexcept {
  return data_.capacity() + params_.scales.capacity() * sizeof(float) +
         params_.zero_points.capacity() * sizeof(std::int32_t);
}

void PackedRows::expand(std::int64_t row, float* dst) const {
  const std::uint8_t* src = data_.data() + row_bytes_ * static_cast<std::size_t>(row);
  const std::int64_t groups = (columns_ + params_.group - 1) / params_.group;
  for (std::int64_t g = 0; g < groups; ++g) {
    const auto index = static_cast<std::size_t>(row * groups + g);
    const std::int32_t zero = params_.zero_points.empty() ? 0 : params_.zero_points[index];
    const Affine affine{params_.scales[index], static_cast<float>(base_ - zero)};
    const std::int64_t begin = g * params_.group;
    const std::int64_t count = std::min(params_.group, columns_ - begin);
    if (bits_ == 8) {
      expand_bytes(src + begin, count, affine, dst + begin);
    } else {
      expand_bits(src, static_cast<std::uint64_t>(begin * bits_), bits_,
                  {dst + begin, static_cast<std::size_t>(count)}, affine);
    }
  }
}

}  // namespace quench::quant
