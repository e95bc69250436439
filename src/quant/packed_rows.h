// SPDX-License-Identifier: Apache-2.0
// A quantised matrix that stays packed in memory and is turned into floats a few rows at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quench::quant {

/// The scales of a matrix: each row has one for every `group` neighbours.
struct RowParams {
  std::int64_t group = 0;
  std::vector<float> scales;              ///< row after row
  std::vector<std::int32_t> zero_points;  ///< likewise, or empty: zero
};

/// Rows of integers in as few bits as they need.
class PackedRows {
 public:
  /// `integers` holds `rows` rows; params must fit.
  PackedRows(std::span<const std::int8_t> integers, std::int64_t rows, RowParams params);
  PackedRows(std::span<const std::int16_t> integers, std::int64_t rows, RowParams params);

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }
  int bits() const noexcept { return bits_; }
  /// Bytes of memory that it holds.
  std::size_t size() const noexcept;

  /// Writes one row as floats: (integer - zero point) * scale.
  void expand(std::int64_t row, float* dst) const;

 private:
  template <typename T>
  void pack(std::span<const T> integers);

  std::int64_t rows_;
  std::int64_t columns_;
  int bits_ = 0;
  std::int32_t base_ = 0;  ///< the smallest integer
  std::size_t row_bytes_ = 0;
  RowParams params_;
  std::vector<std::uint8_t> data_;
};

}  // namespace quench::quant
