// SPDX-License-Identifier: Apache-2.0
// Orders samples by how soon they tell.
#include "analyze/risk.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace quench::analyze {

double margin(const Tensor& output) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  double first = kNone;
  double second = kNone;
  for (const float value : to_float(output)) {
    const auto wide = static_cast<double>(value);
    if (wide > first) {
      second = std::exchange(first, wide);
    } else {
      second = std::max(second, wide);
    }
  }
  // One class, or none that is a number: nothing can overtake it.
  return second == kNone ? -kNone : first - second;
}

std::vector<std::int64_t> riskiest_first(const std::vector<evaluation::SampleScore>& in_float,
                                         const std::vector<double>& margins) {
  std::vector<std::int64_t> order(in_float.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, {}, [&](std::int64_t place) {
    const auto index = static_cast<std::size_t>(place);
    return std::pair(in_float[index].metric, margins[index]);
  });
  return order;
}

}  // namespace quench::analyze
