// SPDX-License-Identifier: Apache-2.0
// Bits by layer: to a stated error, to a stated size, or to a stated cosine of the outputs.
#pragma once

#include "pipeline/weight_items.h"

namespace quench {

/// Sets the bits and the step of every item by what its error does to the outputs, on the first
/// batch of the data or on random inputs. Where `init_scale` alone is given and the engine cannot
/// run the model, by the weights' sizes, which the report is warned of.
void choose_mixed_bits(const Model& model, const QuantizeOptions& options, const Context& context,
                       std::vector<WeightItem>& items, QuantizeReport& report);

}  // namespace quench
