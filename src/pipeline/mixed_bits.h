// SPDX-License-Identifier: Apache-2.0
// Bits by layer: to a stated error, to a stated size, or to a stated cosine of the outputs.
#pragma once

#include "pipeline/weight_items.h"

namespace quench {

/// Sets the bits and the step of every item. The engine is loaded only where outputs are measured:
/// for `auto_tune` and `size_target`, on the first batch of the data or on random inputs.
void choose_mixed_bits(const Model& model, const QuantizeOptions& options, const Context& context,
                       std::vector<WeightItem>& items);

}  // namespace quench
