// SPDX-License-Identifier: Apache-2.0
// The error that each integer layer makes by itself.
#pragma once

#include "pipeline/quantize_job.h"

namespace quench {

/// Each integer layer of a job is fed with the float model's values, and its result is put on its
/// grid. In the order in which they run; empty where no samples were held out.
std::vector<LayerScore> score_layers(const Job& job, const Model& quantised,
                                     const Context& context);

}  // namespace quench
