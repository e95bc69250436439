// SPDX-License-Identifier: Apache-2.0
// What a user should know about data, ranges and layers, with the flag that helps.
#pragma once

#include "quench/quantize.h"

namespace quench {

/// Warns of NaN, infinities and constant values.
void warn_of_values(const StatisticMap& statistics, QuantizeReport& report);
/// Warns of few samples.
void warn_of_few_samples(std::int64_t samples, QuantizeReport& report);
/// The share of the values seen that lie outside of a scale: bins that lie there wholly.
double clipped_share(const Statistic& statistic, const QuantParams& params);
/// Warns of values that the chosen scales clip much of.
void warn_of_clipping(const StatisticMap& statistics, const QuantSolution& solution,
                      QuantizeReport& report);
/// Warns of model inputs that lie outside of what calibration has seen.
void warn_of_unseen_inputs(const TensorMap& inputs, const StatisticMap& statistics,
                           QuantizeReport& report);
/// Warns of output channels whose weights are all zero.
void warn_of_dead_channels(const Model& model, const QuantPlan& plan, QuantizeReport& report);
/// Warns of layers whose channels share a scale although the target takes one for each.
void warn_of_shared_scales(const Model& model, const QuantPlan& plan, QuantizeReport& report);
/// Warns of layers that are far from the float ones.
void warn_of_layers(QuantizeReport& report);

}  // namespace quench
