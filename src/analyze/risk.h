// SPDX-License-Identifier: Apache-2.0
// Which samples show first that a model is not good enough.
#pragma once

#include <cstdint>
#include <vector>

#include "evaluate/sample_metric.h"

namespace quench::analyze {

/// How far the first class is ahead of the second: by how much an output may be wrong.
double margin(const Tensor& output);

/// The places of the samples: those that the float model gets wrong, then those that it was least
/// sure of. A model that is not good enough has used up its mistakes long before the end.
std::vector<std::int64_t> riskiest_first(const std::vector<evaluation::SampleScore>& in_float,
                                         const std::vector<double>& margins);

}  // namespace quench::analyze
