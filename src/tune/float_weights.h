// SPDX-License-Identifier: Apache-2.0
// Weights of a Q/DQ graph as the floats that they stand for.
#pragma once

#include "quench/model.h"

namespace quench::tune {

/// Puts floats in the place of every constant behind a DequantizeLinear. Float kernels pack them
/// once, and those give the same results with any number of threads; kernels whose weights are
/// computed in every run do not.
void expand_to_float(Model& qdq);

}  // namespace quench::tune
