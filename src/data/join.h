// SPDX-License-Identifier: Apache-2.0
// The one place where samples become a batch.
#pragma once

#include <vector>

#include "quench/data.h"

namespace quench {

/// Whether two samples can be in one batch: their inputs have one type and, but for the first
/// dimension, one shape.
bool alike(const Sample& a, const Sample& b);

/// Samples put together along the first dimension; one sample is left as it is. Throws
/// Error(BadData) that names two samples which are not alike. Large ones are copied on several
/// threads.
Batch join(std::vector<Sample> samples, int threads = 1);

}  // namespace quench
