// SPDX-License-Identifier: Apache-2.0
// One head of attention at a time: its scores never leave the cache.
#pragma once

#include <cstdint>

namespace quench::exec {

struct HeadShape {
  std::int64_t keys = 0;
  std::int64_t depth = 0;  ///< of queries and keys
  std::int64_t width = 0;  ///< of values and results

  /// Floats that `pack_head` and `attend` need.
  std::int64_t space() const;
};

/// Rows of floats, `stride` apart.
struct FloatRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

/// Queries of one head that are asked together, and where their results go.
struct HeadQueries {
  FloatRows rows;
  std::int64_t count = 0;               ///< at most `kQueries`
  float scale = 1;                      ///< of the scores
  const float* const* masks = nullptr;  ///< one for each query, added to its scores; or null
  float* dst = nullptr;
  std::int64_t stride = 0;  ///< of `dst`
};

/// Queries whose scores are in the cache at the same time.
inline constexpr std::int64_t kQueries = 24;

/// Whether this processor has what the functions below need (AVX-512).
bool can_attend();
/// Lays keys and values out in `space` as `attend` reads them.
void pack_head(const HeadShape& shape, FloatRows keys, FloatRows values, float* space);
/// softmax(queries * keys * scale + mask) * values.
void attend(const HeadShape& shape, const HeadQueries& queries, float* space);

}  // namespace quench::exec
