// SPDX-License-Identifier: Apache-2.0
// Layers that are too small to be worth quantising.
#pragma once

#include "quench/quantize.h"

namespace quench {

/// The configuration with a rule that skips each layer below `min_quant_weight_size` or
/// `min_quant_weight_channel`.
QuantConfig without_small_layers(const Graph& graph, const QuantizeOptions& options);

}  // namespace quench
