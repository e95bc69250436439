// SPDX-License-Identifier: Apache-2.0
// Weights of the graphs inside If, Loop and Scan.
#pragma once

#include "tune/weight_items.h"

namespace quench {

/// How many weights of such graphs can be quantised.
std::size_t count_body_weights(const Model& model, const QuantizeOptions& options);

/// Stores them as integers; to be called when the model's own weights are done. They are rounded
/// without samples: what a branch reads is not known beforehand.
void quantize_bodies(Model& model, const QuantizeOptions& options, const Context& context,
                     QuantizeReport& report);

}  // namespace quench
