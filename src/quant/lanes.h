// SPDX-License-Identifier: Apache-2.0
// Running values side by side: loops that keep one a lane vectorise, in the same order everywhere.
#pragma once

#include <array>
#include <cstddef>

namespace quench::quant {

constexpr int kNumLanes = 16;

template <typename T>
class Lanes {
 public:
  constexpr Lanes() : values_{} {}
  constexpr explicit Lanes(T first) { values_.fill(first); }
  constexpr T& operator[](int lane) { return values_[static_cast<std::size_t>(lane)]; }
  constexpr T operator[](int lane) const { return values_[static_cast<std::size_t>(lane)]; }

  constexpr double total() const {
    double sum = 0;
    for (const T value : values_) sum += static_cast<double>(value);
    return sum;
  }

 private:
  std::array<T, kNumLanes> values_;
};

}  // namespace quench::quant
