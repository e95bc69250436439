// SPDX-License-Identifier: Apache-2.0
// Rows of bytes times constant bytes, by our own tiles: convolutions and matrix products alike.
#pragma once

#include <functional>
#include <optional>

#include "exec/engine/int8/finish.h"
#include "exec/engine/int8/tail.h"

namespace quench::exec {

/// How a row of bytes falls into pieces: `runs` of `length` bytes each. Pieces are read up to a
/// multiple of four bytes.
struct RowForm {
  std::int64_t runs = 1;
  std::int64_t length = 0;

  std::int64_t groups() const { return (length + 3) / 4; }
  std::int64_t padded() const { return 4 * groups(); }
};

/// Weights packed for tiles.
class PackedColumns {
 public:
  /// Column c of the product has weight `data[c * stride + places[r * length + i]]` for byte i of
  /// run r.
  PackedColumns(const std::int8_t* data, std::int64_t columns, std::int64_t stride,
                const std::vector<std::int64_t>& places, RowForm form);

  /// Sixteen columns each.
  struct Panel {
    std::int64_t first = 0;  ///< in units of sixteen columns
    int width = 0;
    const std::int8_t* weights = nullptr;
  };
  const std::vector<Panel>& panels() const noexcept { return panels_; }
  std::int64_t columns() const noexcept { return columns_; }
  RowForm form() const noexcept { return form_; }

 private:
  std::int64_t columns_;
  RowForm form_;
  std::vector<Panel> panels_;
  at::Tensor packed_;
};

/// Writes where the pieces of rows `first` to `first + count` lie: piece r of row i to
/// `pieces[r * count + i]`. What does not lie in memory as a piece is put together in `scratch`.
using PiecesFunction = std::function<void(std::int64_t first, std::int64_t count,
                                          const std::uint8_t** pieces, std::uint8_t* scratch)>;

/// The rows of one product.
struct ProductRows {
  std::int64_t count = 0;
  PiecesFunction pieces;
  bool flip = false;                    ///< the bytes are signed
  const std::int32_t* start = nullptr;  ///< of the sums, for every column
  const void* residual = nullptr;
  void* dst = nullptr;
  const float* factors = nullptr;  ///< of floats, one for each row; or null
};

/// Multiplies; results lie row by row.
void multiply_rows(const PackedColumns& columns, const Finish& finish, const ProductRows& rows);

/// Rows that lie one after the other in memory, `length` bytes each.
PiecesFunction plain_rows(const std::uint8_t* src, std::int64_t rows, RowForm form);

/// Weights [K, N], or [N, K] where they are `transposed`, packed; their pages are given back.
PackedColumns pack_matrix(const at::Tensor& weights, bool transposed);

/// What a layer's bias and its source's zero point add to the sums, and what is behind them.
struct LayerNumbers {
  Finish finish;
  std::vector<std::int32_t> start;
};
/// Nothing where this machine or the tail (its activation) wants another kernel.
std::optional<LayerNumbers> layer_numbers(const ByteParams& source, const IntegerTail& tail,
                                          const SignedWeights& weights, const at::Tensor& bias);

/// Sixteen a time.
constexpr std::int64_t whole_lanes(std::int64_t columns) { return (columns + 15) / 16 * 16; }

}  // namespace quench::exec
