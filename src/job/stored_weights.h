// SPDX-License-Identifier: Apache-2.0
// Weights that are stored as integers while activations stay in float until the model runs: the
// part of a job that weight-only and dynamic quantisation have to themselves.
#pragma once

#include "job/job.h"

namespace quench::job {

/// Fills `job.stored`, and the report's layers in float. Error(Unsupported) where a job for weights
/// finds none.
void plan_stored_weights(Job& job);
/// Whether some of them will be rounded by what their layers' inputs look like.
bool wants_gptq(const Job& job);
/// Puts their integers into `model`, which is the job's own or was made from it.
void lower_stored_weights(Job& job, Model& model);

}  // namespace quench::job
