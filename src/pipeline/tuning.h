// SPDX-License-Identifier: Apache-2.0
// The steps around calibration that make the result more accurate, each kept only where held-out
// samples say so.
#pragma once

#include "pipeline/judge.h"

namespace quench {

/// Before calibration: scales channels between layers where a trial on a few samples gets nearer
/// to float with them. Model and plan of the job change; `report` tells.
void equalize_channels(Job& job, const Judge& judge, const QuantizeOptions& options,
                       const Context& context, QuantizeReport& report);

/// After calibration: where no rule names an observer of activations, takes the grids that leave
/// the outputs nearest to float, of those that leave none far from what min_max gives. Plan and
/// solution of the job change; `report` tells. Costs five runs of the samples tried on, at most.
void choose_observer(Job& job, const QuantizeOptions& options, const Context& context,
                     QuantizeReport& report);

/// After calibration: the quantised model, biases corrected as the options say. `report` tells of
/// that and of the outputs.
Model with_biases(const Job& job, const Judge& judge, const QuantizeOptions& options,
                  const Context& context, QuantizeReport& report);

}  // namespace quench
