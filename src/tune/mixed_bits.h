// SPDX-License-Identifier: Apache-2.0
// As many bits for each weight as its error allows.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "quant/weight.h"

namespace quench::tune {

/// The coarsest scale whose relative error is not above `target`: one step for all channels, as
/// entropy coding likes it. Integers of 8 bits, where their finest scale does not miss `limit`.
quant::WeightSpec coarsest_step(const Tensor& weight, const quant::WeightSpec& wanted,
                                double target, double limit, int threads);

/// What is asked of a weight of so many bits, given what is asked of it at other widths.
quant::WeightSpec with_bits(quant::WeightSpec wanted, int bits);

/// The relative error of a weight at each width that mixed bits choose from.
struct WidthErrors {
  static constexpr std::array kWidths = {2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
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

/// Sensitivities where none can be measured: the greatest weight may have the most error, smaller
/// ones less, because bits cost little there.
void assume_sensitivities(std::span<ErrorShare> shares);

/// What is asked of a weight whose error is to be about `error`: one step for all channels, as
/// entropy coding likes it. Integers of 8 bits, of 16 where 8 would miss the error.
quant::WeightSpec with_error(const Tensor& weight, const quant::WeightSpec& wanted, double error,
                             int threads);

/// The width of fixed scales at which a weight that is normally distributed, out to 3.5 standard
/// deviations, has this relative error: log2(2 / error), not always whole.
double fixed_width(double error);

}  // namespace quench::tune
