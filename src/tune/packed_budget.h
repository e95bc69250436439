// SPDX-License-Identifier: Apache-2.0
// Steps for weights that are packed afterwards, to a stated size.
#pragma once

#include "tune/mixed_bits.h"
#include "tune/weight_items.h"

namespace quench::tune {

/// The steps with the least error of the outputs whose integers take, packed, as many bytes as
/// fixed scales of fixed_width(init_scale) bits would.
std::vector<quant::WeightSpec> fill_budget(const Model& model, const std::vector<WeightItem>& items,
                                           const std::vector<ErrorShare>& shares, double init_scale,
                                           const Context& context);

}  // namespace quench::tune
