// SPDX-License-Identifier: Apache-2.0
// The little dense linear algebra that GPTQ needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quench::tune {

/// A square matrix, row by row.
struct Square {
  std::int64_t size = 0;
  std::vector<double> data;

  explicit Square(std::int64_t n) : size(n), data(static_cast<std::size_t>(n * n)) {}
  double* row(std::int64_t i) { return data.data() + i * size; }
  const double* row(std::int64_t i) const { return data.data() + i * size; }
};

/// sums += rows^T rows, for rows of sums.size floats; the upper triangle only.
void add_outer(Square& sums, std::span<const float> rows, int threads);

/// The upper triangular U with inverse(h) = U^T U. Only the upper triangle of `h` is read. Returns
/// false when `h` is not positive definite.
bool inverse_factor(Square& h, int threads);

}  // namespace quench::tune
