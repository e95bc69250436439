// SPDX-License-Identifier: Apache-2.0
// Samples that the caller's code gives.
#pragma once

#include "quench/data.h"

namespace quench::data {

/// What `options.source` gives, as `open_data` opens it.
std::unique_ptr<SampleSource> open_own_samples(const DataOptions& options,
                                               const std::vector<Value>& inputs);

}  // namespace quench::data
