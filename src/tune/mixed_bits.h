// SPDX-License-Identifier: Apache-2.0
// As many bits for each weight as its error allows.
#pragma once

#include <span>
#include <vector>

#include "quant/weight.h"

namespace quench::tune {

/// The coarsest grid whose relative error is not above `target`: one step for all channels, as
/// entropy coding likes it. Integers of 8 bits, where their finest grid does not miss `limit`.
quant::WeightSpec coarsest_step(const Tensor& weight, const quant::WeightSpec& wanted,
                                double target, double limit, int threads);

/// What is asked of a weight of so many bits, given what is asked of it at other widths.
quant::WeightSpec with_bits(quant::WeightSpec wanted, int bits);

/// The relative error of a weight at each width that mixed bits choose from.
struct WidthErrors {
  static constexpr int kWidths[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
  std::vector<double> errors;  ///< by place in kWidths
  /// The fewest bits whose error is not above `target`; 16 when there are none.
  int fewest(double target) const;
};
WidthErrors measure_widths(const Tensor& weight, const quant::WeightSpec& wanted, int threads);

/// One weight in the share-out of errors.
struct ErrorShare {
  std::int64_t elements = 0;
  double sensitivity = 1;  ///< squared error of the outputs for a relative error of 1
};

/// The relative error of each weight that makes the outputs' error least for the bits spent: its
/// square goes with elements / sensitivity. `slope` is the price of a bit.
std::vector<double> share_out(std::span<const ErrorShare> shares, double slope);

/// Without a sensitivity: the greatest weight may have `target`, smaller ones less, because bits
/// cost little there.
std::vector<double> share_by_size(std::span<const ErrorShare> shares, double target);

}  // namespace quench::tune
