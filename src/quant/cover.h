// SPDX-License-Identifier: Apache-2.0
// From a range of values to a scale and zero point, and the search for a range with less error.
#pragma once

#include "quant/kernels.h"
#include "quench/quant.h"

namespace quench::quant {

/// value = (integer - zero) * scale.
struct ScaleAndZero {
  float scale = 1;
  std::int32_t zero = 0;
};

/// The smallest and largest integer.
struct Steps {
  std::int32_t low = 0;
  std::int32_t high = 0;
};

/// The scale and zero point that cover a range which holds zero and something else.
ScaleAndZero cover(const Range& range, const Steps& steps, bool symmetric);
/// As the loops take them.
LoopParams loop_params(const ScaleAndZero& params, const Steps& steps);

/// Factors of a range to try, in percent: coarse ones downwards, then six around the best of them.
struct FactorSearch {
  int first = 0;
  int last = 0;
  int step = 0;
  double fine = 0;
};

/// The factor, at most 1, with the least `error(factor)`; the whole range where none is better.
template <typename Error>
double best_factor(const FactorSearch& search, const Error& error) {
  double best = 1;
  double least = error(best);
  const auto attempt = [&](double factor) {
    const double found = error(factor);
    if (!(found < least)) return;
    least = found;
    best = factor;
  };
  for (int percent = search.first; percent >= search.last; percent -= search.step) {
    attempt(percent / 100.0);
  }
  const double middle = best;
  for (int k = -3; k <= 3; ++k) {
    if (k != 0 && middle + search.fine * k < 1) attempt(middle + search.fine * k);
  }
  return best;
}

}  // namespace quench::quant
