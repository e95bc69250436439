// SPDX-License-Identifier: Apache-2.0
// Gates that exporters write out in several nodes, each of which would be rounded.
#pragma once

#include "quench/model.h"

namespace quench::tune {

/// Turns Clip(x + 3, 0, 6) / 6, whether or not a product with x lies before the division, into
/// HardSigmoid(x): one node in float in place of three on integers. Returns how many.
std::size_t join_gates(Model& model);

}  // namespace quench::tune
