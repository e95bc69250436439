// SPDX-License-Identifier: Apache-2.0
// What statistics.cu and those who launch its kernels must agree on. GPU kernels read this file
// too.
#pragma once

#include <cstdint>

namespace quench::exec {

inline constexpr int kPieceThreads = 16;                 ///< of a piece: one for each lane
inline constexpr std::int64_t kCountedElements = 65536;  ///< of a block that counts
inline constexpr int kRankThreads = 256;                 ///< that look for a sample's ranks
inline constexpr std::int64_t kJoinedSamples = 16;       ///< whose bins one block adds up

/// What a piece of a sample comes to.
struct PieceSummary {
  float min;
  float max;
  double sum;
  double sum_squares;
  std::int32_t finite;
  std::int32_t nans;
  std::int32_t zeros;
  std::int32_t unused;
};

/// A sample's BinRange as the loops want it, worked out once.
struct SampleBins {
  double width;
  std::int64_t first;
  std::int64_t count;
};

}  // namespace quench::exec
