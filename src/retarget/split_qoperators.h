// SPDX-License-Identifier: Apache-2.0
// Integer operators as the float operators that they stand for.
#pragma once

#include "quench/model.h"

namespace quench::retargeting {

/// Turns QLinear operators into DequantizeLinear, the float operator, QuantizeLinear. One whose
/// scales are computed, or that has no row, stays as it is.
void split_qoperators(Model& model);

}  // namespace quench::retargeting
