// SPDX-License-Identifier: Apache-2.0
// The least and greatest of the numbers that kernels write, for whoever quantises them next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <mutex>

namespace quench::exec {

/// The least and greatest numbers so far, lane by lane. NaN is neither.
struct alignas(64) Extent {
  static constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> low, high;

  Extent() {
    low.fill(std::numeric_limits<float>::infinity());
    high.fill(-std::numeric_limits<float>::infinity());
  }
};

/// What threads have found together; zero is always part of it.
class RealRange {
 public:
  void add(float low, float high) {
    const std::lock_guard lock(mutex_);
    low_ = std::min(low_, low);
    high_ = std::max(high_, high);
  }
  void add(const Extent& extent) {
    add(*std::min_element(extent.low.begin(), extent.low.end()),
        *std::max_element(extent.high.begin(), extent.high.end()));
  }
  float low() const noexcept { return low_; }
  float high() const noexcept { return high_; }

 private:
  std::mutex mutex_;
  float low_ = 0;
  float high_ = 0;
};

}  // namespace quench::exec
