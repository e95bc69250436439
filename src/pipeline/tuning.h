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

/// After calibration: where no rule names an observer of activations, takes the one of two whose
/// grids leave the outputs nearer to float. Plan and solution of the job change; `report` tells.
void choose_observer(Job& job, const Judge& judge, const QuantizeOptions& options,
                     const Context& context, QuantizeReport& report);

/// After calibration: the quantised model, biases corrected as the options say. `report` tells of
/// that and of the outputs.
Model with_biases(const Job& job, const Judge& judge, const QuantizeOptions& options,
                  const Context& context, QuantizeReport& report);

}  // namespace quench
