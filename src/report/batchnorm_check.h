// SPDX-License-Identifier: Apache-2.0
// Compares what BatchNormalization sees with what it saw in training.
#pragma once

#include "evaluate/samples.h"
#include "quench/quantize.h"

namespace quench {

/// Runs the first samples through the first layers of a model that still has its
/// BatchNormalization nodes, and warns where their inputs are unlike the stored statistics: the
/// sign of a wrong mean, std or order of colours.
void warn_of_unlike_data(const Model& unfolded, const evaluation::Samples& samples,
                         const Context& context, QuantizeReport& report);

}  // namespace quench
