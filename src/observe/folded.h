// SPDX-License-Identifier: Apache-2.0
// The histogram of magnitudes.
#pragma once

#include <vector>

#include "quench/statistics.h"

namespace quench::observe {

/// Counts of |value| in bins [i * width, (i + 1) * width), from zero to the largest magnitude.
std::vector<double> folded(const Statistic& statistic);

}  // namespace quench::observe
