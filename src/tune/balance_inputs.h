// SPDX-License-Identifier: Apache-2.0
// Inputs of matrix products, scaled so that one scale serves a whole weight.
#pragma once

#include <span>
#include <vector>

#include "quench/tensor.h"

namespace quench::tune {

/// The greatest magnitude in each row of a matrix (inputs x outputs).
std::vector<double> row_ranges(const Tensor& matrix);

/// A factor for each input of matrices that read the same activations, whose rows are to be divided
/// by it: the root of a row's range, so that weights and activations share the burden. Empty where
/// it would not halve the rounding errors of the weights.
std::vector<float> balance_inputs(std::span<const std::vector<double>> all);

/// The matrix with every row divided by its factor.
Tensor divide_rows(const Tensor& matrix, std::span<const float> factors);

}  // namespace quench::tune
