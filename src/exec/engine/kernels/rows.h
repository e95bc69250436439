// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats, made for several generations of processors.
#pragma once

#include <cstdint>

namespace quench::exec {

/// dst = softmax(src) of one row.
void softmax_loop(const float* src, float* dst, std::int64_t columns);
/// The same for rows of few columns that lie one after the other.
void softmax_short_rows_loop(const float* src, float* dst, std::int64_t rows, std::int64_t columns);
}  // namespace quench::exec
