// SPDX-License-Identifier: Apache-2.0
// Outer products, a Cholesky factor and a triangular inverse. The inner loops run along rows, so
// that compilers vectorise them without changing the order of sums.
#include "tune/dense.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/cpu.h"
#include "base/parallel.h"

namespace quench::tune {
namespace {

/// Columns that are eliminated together: the rest of the matrix is then read once for all of them.
constexpr std::int64_t kPanel = 8;

QUENCH_MULTIVERSION(void, axpy,
                    (double factor, const double* __restrict x, double* __restrict y,
                     std::int64_t count),
                    (factor, x, y, count)) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

/// y += sum of factors[k] * rows[k].
QUENCH_MULTIVERSION(void, axpy_panel,
                    (const double* __restrict factors, const double* const* rows,
                     double* __restrict y, std::int64_t count),
                    (factors, rows, y, count)) {
  const double* r0 = rows[0];
  const double* r1 = rows[1];
  const double* r2 = rows[2];
  const double* r3 = rows[3];
  const double* r4 = rows[4];
  const double* r5 = rows[5];
  const double* r6 = rows[6];
  const double* r7 = rows[7];
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] += factors[0] * r0[i] + factors[1] * r1[i] + factors[2] * r2[i] + factors[3] * r3[i] +
            factors[4] * r4[i] + factors[5] * r5[i] + factors[6] * r6[i] + factors[7] * r7[i];
  }
}

/// Row i of the upper triangle gets eight samples at once.
QUENCH_MULTIVERSION(void, add_samples,
                    (const float* const* rows, std::int64_t width, std::int64_t i,
                     double* __restrict sums),
                    (rows, width, i, sums)) {
  const float* r0 = rows[0];
  const float* r1 = rows[1];
  const float* r2 = rows[2];
  const float* r3 = rows[3];
  const float* r4 = rows[4];
  const float* r5 = rows[5];
  const float* r6 = rows[6];
  const float* r7 = rows[7];
  for (std::int64_t j = i; j < width; ++j) {
    const float sum = r0[i] * r0[j] + r1[i] * r1[j] + r2[i] * r2[j] + r3[i] * r3[j] +
                      r4[i] * r4[j] + r5[i] * r5[j] + r6[i] * r6[j] + r7[i] * r7[j];
    sums[j] += static_cast<double>(sum);
  }
}

/// Eliminates rows [first, last) against each other; they hold rows of the upper factor then.
bool factor_panel(Square& a, std::int64_t first, std::int64_t last) {
  for (std::int64_t k = first; k < last; ++k) {
    double* row = a.row(k);
    if (!(row[k] > 0) || !std::isfinite(row[k])) return false;
    const double root = std::sqrt(row[k]);
    for (std::int64_t j = k; j < a.size; ++j) row[j] /= root;
    for (std::int64_t i = k + 1; i < last; ++i) axpy(-row[i], row + i, a.row(i) + i, a.size - i);
  }
  return true;
}

/// Takes eight finished rows, from `first` on, out of row i.
void subtract_panel(Square& a, std::int64_t first, std::int64_t i) {
  std::array<double, kPanel> factors{};
  std::array<const double*, kPanel> rows{};
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double* row = a.row(first + static_cast<std::int64_t>(k));
    factors[k] = -row[i];
    rows[k] = row + i;
  }
  axpy_panel(factors.data(), rows.data(), a.row(i) + i, a.size - i);
}

/// Rows [first, last) of an upper triangle, dealt out among threads in turn: those further down are
/// shorter.
struct Deal {
  std::int64_t first;
  std::int64_t last;
  int threads;

  /// Calls body(row) for the rows of the parts [begin, end).
  template <typename Body>
  void run(std::int64_t begin, std::int64_t end, const Body& body) const {
    for (std::int64_t part = begin; part < end; ++part) {
      for (std::int64_t row = first + part; row < last; row += threads) body(row);
    }
  }
};

/// a = R^T R with R upper triangular, in place.
bool factor(Square& a, int threads) {
  for (std::int64_t first = 0; first < a.size; first += kPanel) {
    const std::int64_t last = std::min(a.size, first + kPanel);
    if (!factor_panel(a, first, last)) return false;
    if (last - first < kPanel) continue;  // the end of the matrix
    const std::int64_t rest = a.size - last;
    const Deal deal{last, a.size, rest * rest > 100'000 ? threads : 1};
    parallel_for(deal.threads, deal.threads, [&](std::int64_t begin, std::int64_t end) {
      deal.run(begin, end, [&](std::int64_t i) { subtract_panel(a, first, i); });
    });
  }
  return true;
}

/// The rows and columns of the upper triangle in the opposite order; the result is symmetric.
Square reversed(const Square& h) {
  Square result(h.size);
  for (std::int64_t i = 0; i < h.size; ++i) {
    for (std::int64_t j = i; j < h.size; ++j) {
      const std::int64_t a = h.size - 1 - j;
      const std::int64_t b = h.size - 1 - i;
      result.row(a)[b] = h.row(i)[j];
    }
  }
  return result;
}

}  // namespace

void add_outer(Square& sums, std::span<const float> rows, int threads) {
  const std::int64_t width = sums.size;
  if (width == 0) return;
  const std::int64_t total = static_cast<std::int64_t>(rows.size()) / width;
  const std::vector<float> nothing(static_cast<std::size_t>(width));
  const auto panel_at = [&](std::int64_t first) {
    std::array<const float*, kPanel> samples{};
    for (const float*& sample : samples) {
      sample = first < total ? rows.data() + first * width : nothing.data();
      ++first;
    }
    return samples;
  };
  const Deal deal{0, width, width * width * total > 1'000'000 ? threads : 1};
  parallel_for(deal.threads, deal.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = 0; first < total; first += kPanel) {
      const auto samples = panel_at(first);
      deal.run(begin, end,
               [&](std::int64_t i) { add_samples(samples.data(), width, i, sums.row(i)); });
    }
  });
}

bool inverse_factor(Square& h, int threads) {
  // With the order reversed, h = L^T L with L lower triangular; its inverse is what is wanted,
  // transposed twice by the reversal: rows of U come out of a plain back substitution.
  Square upper = reversed(h);
  if (!factor(upper, threads)) return false;
  const std::int64_t n = h.size;
  // r(i, j) = upper(n-1-j, n-1-i): upper triangular with h = r r^T, and U = inverse(r).
  for (std::int64_t i = n - 1; i >= 0; --i) {
    double* out = h.row(i);
    std::fill(out, out + n, 0.0);
    const double inverse = 1.0 / upper.row(n - 1 - i)[n - 1 - i];
    out[i] = inverse;
    for (std::int64_t k = i + 1; k < n; ++k) {
      const double r = upper.row(n - 1 - k)[n - 1 - i];
      if (r != 0) axpy(-r * inverse, h.row(k) + k, out + k, n - k);
    }
  }
  return true;
}

}  // namespace quench::tune
